// The dashboard, in a real browser, as a person uses it while an agent calls through the proxy. `--client` names what
// the person does; `--data` is JSON: the `upstream` of the agent, the folder for `pictures`, tokens.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { against, browse, call } from './browser.mjs'
import { flags, run } from './told.mjs'

const given = JSON.parse(flags.data ?? '{}')
const rows = page => page.locator('#rows tr')
const picture = async (page, name, options = {}) => {
  if (given.pictures) await page.screenshot({ path: `${given.pictures}/dashboard-${name}.png`, ...options })
}

const visits = {
  // Rows appear, are filtered, pause and resume; a click explains one.
  async live (facts, open) {
    const page = await open('/')
    facts.address = new URL(page.url()).pathname
    facts.empty = await page.locator('.empty').isVisible()
    facts.weight = await page.evaluate(() => performance.getEntriesByType('resource')
      .concat(performance.getEntriesByType('navigation')).reduce((sum, one) => sum + one.transferSize, 0))
    facts.got = [await call(`${given.upstream}/json`), await call(`${given.upstream}/status/404`)]
    await rows(page).nth(1).waitFor()
    facts.rows = await rows(page).allInnerTexts()

    await page.getByRole('link', { name: 'Pause' }).click()
    await page.getByText('Paused').waitFor()
    facts.paused = new URL(page.url()).search
    await call(`${given.upstream}/bytes/1`)
    facts.whilePaused = await rows(page).count()
    await page.getByRole('link', { name: 'Resume' }).click()
    await rows(page).nth(2).waitFor()

    await page.getByLabel('Status').fill('4xx')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/status=4xx/)
    await call(`${given.upstream}/bytes/2`)
    await call(`${given.upstream}/status/418`)
    await page.getByText('/status/418').waitFor()
    facts.filtered = await page.locator('.request').allInnerTexts()
    await page.getByRole('link', { name: 'Clear' }).click()

    await call(`${given.upstream}/json?late`, { scope: 'faulty' })
    await page.locator('#rows .request a', { hasText: 'late' }).click()
    const detail = page.locator('#detail')
    await detail.getByRole('heading', { name: 'Rules' }).waitFor()
    facts.explained = await detail.innerText()
    facts.focused = await page.evaluate(() => document.activeElement.textContent)
    facts.curl = await detail.locator('#curl').textContent()
    const still = await open(await page.locator('#rows a').first().getAttribute('href'), { javaScriptEnabled: false })
    await still.getByText('curl', { exact: true }).click()
    facts.curlShown = await still.locator('#curl').innerText()
    await still.context().close()
    await detail.getByRole('button', { name: 'Record scope faulty' }).click()
    await detail.getByText('runs').waitFor()
    await call(`${given.upstream}/json?recorded`, { scope: 'faulty', headers: { authorization: 'Bearer sk-very-secret-0123456789' } })
    await page.locator('#rows .request a', { hasText: 'recorded' }).click()
    await detail.getByRole('heading', { name: '/json?recorded' }).waitFor()
    await detail.getByRole('link', { name: 'Look in recordings' }).click()
    await detail.getByRole('heading', { name: 'Request' }).waitFor()
    facts.recorded = await detail.locator('#recorded').innerText()
    await picturesque(page)
    await picture(page, 'live')
    facts.against = await against(open, '/live', {}, async page => {
      await page.locator('#rows a:visible').first().click()
      await page.getByRole('heading', { name: 'Rules' }).waitFor()
    })
  },

  // A profile is switched in two clicks while an agent calls, its effect is shown, and the button at the top ends it.
  async chaos (facts, open) {
    const page = await open('/chaos')
    const agent = calling(`${given.upstream}/json`)
    await page.getByText('No chaos is in force.').waitFor()
    await above(page, '#exchanges', 0)
    facts.before = [...agent.seen]
    await page.locator('select[name=profile]').selectOption('api_outage')
    await page.getByRole('button', { name: 'Switch' }).click()
    const clicked = performance.now()
    await agent.until(503)
    facts.faultAfter = Math.round(performance.now() - clicked)
    await above(page, '#faults', 0)
    facts.shownAfter = Math.round(performance.now() - clicked)
    await page.locator('#status', { hasText: 'api_outage' }).waitFor()
    await above(page, '#since', 90)
    facts.shareBefore = await page.locator('#before').innerText()
    facts.table = await page.locator('#in-force tbody').innerText()
    facts.plotted = await page.locator('#plot canvas').count()
    await picture(page, 'chaos')

    await page.getByLabel('Seed').fill('seven')
    await page.getByRole('button', { name: 'Switch' }).click()
    facts.error = await page.getByRole('alert').innerText()
    await page.getByLabel('Seed').fill('7')
    await page.getByLabel('Scope', { exact: true }).fill('job-7')
    await page.getByRole('button', { name: 'Switch' }).click()
    await page.getByRole('button', { name: 'Stop job-7' }).click()
    await page.getByText('The chaos of job-7 has ended.').waitFor()
    await page.getByRole('button', { name: 'Stop job-7' }).waitFor({ state: 'detached' })
    facts.against = await against(open, '/chaos')

    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight))
    agent.seen.clear()
    // As after a restart of the daemon: the page is loaded again, and its form is accepted.
    const field = page.locator('form[action="/stop"] input[name=csrf]')
    await field.evaluate(input => { input.value = 'of another daemon' })
    await page.getByRole('button', { name: 'Stop all chaos' }).click()
    await page.waitForFunction(() => /^\w{64}$/.test(document.querySelector('form[action="/stop"] input[name=csrf]')?.value))
    facts.stillInForce = await page.locator('#status', { hasText: 'api_outage' }).count()
    await page.getByRole('button', { name: 'Stop all chaos' }).click()
    await agent.until(200)
    await page.getByText('No chaos is in force.').waitFor()
    facts.ended = await page.locator('#status').innerText()
    // Without scripts, the same forms work.
    const plain = await open('/chaos', { javaScriptEnabled: false })
    await plain.locator('select[name=profile]').selectOption('brownout')
    await plain.getByRole('button', { name: 'Switch' }).click()
    facts.plain = await plain.locator('#status').innerText()
    await plain.getByRole('button', { name: 'Stop all chaos' }).click()
    facts.plainEnded = await plain.locator('#status').innerText()
    await agent.stop()
  },

  // The chaos of this daemon ends, then that of all daemons.
  async fleet (facts, open) {
    const page = await open('/chaos')
    await page.getByRole('button', { name: 'Stop all chaos' }).click()
    await page.getByText('No chaos is in force.').waitFor()
    facts.there = (await (await fetch(given.there + '/v1/chaos')).json()).profile
    const stopped = page.waitForResponse(response => response.url().endsWith('/stop'))
    await page.getByRole('button', { name: 'Stop in all daemons' }).click()
    facts.stopped = (await stopped).status()
    facts.against = await against(open, '/chaos')
  },

  // Each role sees what it may do, and what it may not do is refused whoever asks.
  async login (facts, open) {
    const as = async (token, path) => {
      const page = await open(path)
      facts.led = page.url().slice(flags.url.length)
      await page.getByLabel('Token').fill('nobody')
      await page.getByRole('button', { name: 'Log in' }).click()
      facts.wrong = await page.getByRole('alert').innerText()
      await page.getByLabel('Token').fill(token)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.waitForURL(url => url.pathname === path)
      return page
    }
    const csrf = async page => (await page.content()).match(/name="csrf" value="(\w+)"/)?.[1]
    const post = async (page, path, form, headers = {}) =>
      (await page.request.post(flags.url + path, { form, headers, maxRedirects: 0 })).status()

    facts.against = await against(open, '/login')
    await picture(await open('/login'), 'login')
    const viewer = await as(given.viewer, '/chaos')
    facts.viewerButtons = await viewer.getByRole('button').allInnerTexts()
    facts.viewerText = await viewer.locator('main').innerText()
    const switched = { scope: 'default', profile: 'api_outage', seed: '', ttl: '' }
    const own = await csrf(viewer)
    facts.viewerPosts = [
      await post(viewer, '/chaos', { ...switched, csrf: own }),
      await post(viewer, '/stop', { csrf: own })
    ]
    await viewer.goto(flags.url + '/profiles')
    facts.viewerProfiles = await viewer.locator('main :is(button, a.button)').allInnerTexts()
    await viewer.goto(flags.url + '/profiles/api_outage')
    const editor = viewer.locator('.cm-content')
    const before = await editor.innerText()
    await editor.click()
    await viewer.keyboard.type('x')
    facts.viewerTyped = await editor.innerText() !== before
    facts.viewerProfile = await viewer.locator('main button').allInnerTexts()
    facts.viewerSaves = []
    for (const action of ['save', 'delete']) {
      facts.viewerSaves.push(await post(viewer, '/profiles/api_outage', { action, text: before, tag: '', csrf: own }))
    }
    const operator = await as(given.operator, '/chaos')
    facts.operatorButtons = await operator.getByRole('button').allInnerTexts()
    facts.cookies = (await operator.context().cookies()).map(({ name, httpOnly, sameSite, path }) => ({ name, httpOnly, sameSite, path }))
    facts.seen = await operator.evaluate(() => document.cookie)
    facts.forged = [
      await post(operator, '/chaos', switched),
      await post(operator, '/chaos', { ...switched, csrf: own }),
      await post(operator, '/stop', { csrf: 'x' }),
      await post(operator, '/chaos', { ...switched, csrf: await csrf(operator) }, { origin: 'http://evil.test' })
    ]
    await operator.locator('select[name=profile]').selectOption('api_outage')
    await operator.getByRole('button', { name: 'Switch' }).click()
    await operator.getByText('is in force in').waitFor()
    await operator.getByRole('cell', { name: 'hand' }).waitFor()
    const member = await as(given.member, '/chaos')
    facts.member = await member.locator('#in-force').innerText()
    await operator.getByRole('button', { name: 'Log out' }).click()
    await operator.getByLabel('Token').waitFor()
    facts.loggedOut = (await operator.request.get(flags.url + '/live', { maxRedirects: 0 })).status()
    facts.long = await post(operator, '/login', { csrf: await csrf(operator), token: 'x'.repeat(5000) })
    // Others use up the requests without a token; a visitor who has one still logs in.
    const asked = () => operator.request.get(flags.url + '/v1/chaos').then(answer => answer.status())
    while (await asked() !== 429);
    const late = await open('/login')
    await late.getByLabel('Token').fill(given.operator)
    await late.getByRole('button', { name: 'Log in' }).click()
    await late.waitForURL(url => url.pathname === '/live')
  },

  // What an agent and its upstreams say stays text, wherever the pages show it.
  async hostile (facts, open) {
    const script = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
    const json = { 'content-type': 'application/json' }
    await call(`${given.upstream}/json?q=${encodeURIComponent(script)}`)
    await call(`${given.upstream}/v1/chat/completions`, { method: 'POST', headers: json,
      body: JSON.stringify({ model: script, messages: [{ role: 'user', content: script }] }) })
    const tool = name => call(`${given.upstream}/mcp`, { method: 'POST', headers: { ...json, accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { [script]: script } } }) })
    await tool(script)
    const page = await open('/live')
    await rows(page).nth(2).waitFor()
    // The stream brings one too.
    await tool(script + 'streamed')
    await page.getByText('streamed').waitFor()
    facts.text = await page.locator('#rows').innerText()
    facts.explained = ''
    for (let index = 0; index < 4; index++) {
      await page.locator('#rows .request a').nth(index).click()
      await page.locator('#detail h2').waitFor()
      facts.explained += await page.locator('#detail').innerText()
    }
    facts.elements = await page.evaluate(() => [...document.querySelectorAll('main script, main img, main iframe, [onerror], [style]')]
      .map(one => one.outerHTML).filter(one => !one.includes('<canvas')))
    const query = encodeURIComponent(script)
    for (const path of [`/live?tool=${query}&scope=${query}`, `/live/${query}`, `/chaos?scope=${query}`, `/login?next=//evil.test/${query}`]) {
      const other = await open(path)
      facts.elements.push(...await other.evaluate(() => [...document.querySelectorAll('main script, main img')].map(one => one.outerHTML)))
      facts.last = other.url()
    }
  },

  // About 10,000 exchanges a second, if the machine allows it: the page goes on answering, and does not grow.
  async load (facts, open) {
    const page = await open('/live')
    const session = await page.context().newCDPSession(page)
    const heap = async () => {
      await session.send('HeapProfiler.collectGarbage')
      return (await session.send('Runtime.getHeapUsage')).usedSize
    }
    const begun = performance.now()
    const at = share => sleep(share * given.seconds * 1000 - (performance.now() - begun))
    await page.evaluate(watch)
    await call(`${given.upstream}/json`)
    // The page reads the stream.
    await rows(page).first().waitFor()
    const all = wrk(`${given.upstream}/load`, given.seconds)
    await page.getByText('not shown').waitFor()
    await at(1 / 6)
    facts.heap = [await heap()]
    await page.evaluate(() => { window.watched.longestTask = window.watched.longestGap = 0 })
    await at(0.8)
    const { longestTask, longestGap } = await page.evaluate(() => window.watched)
    facts.clicks = { explain: await took(async () => {
      await rows(page).locator('.request a').first().click()
      await page.locator('#detail h2').waitFor()
    }) }
    await at(0.95)
    facts.heap.push(await heap())
    facts.wrk = await all
    // All that went by is shown or counted.
    const total = await exchanges()
    await page.waitForFunction(total => window.watched.counted() >= total, total)
    Object.assign(facts, await page.evaluate(() => ({ ...window.watched, counted: window.watched.counted() })))
    Object.assign(facts, { total, longestTask, longestGap })

    // Clicks while they come.
    const again = wrk(`${given.upstream}/load`, 5)
    await page.waitForFunction(before => window.watched.counted() > before, facts.counted)
    facts.clicks.pause = await took(async () => {
      await page.getByRole('link', { name: 'Pause' }).click()
      await page.getByText('Paused').waitFor()
    })
    await call(`${given.upstream}/status/418`)
    facts.clicks.filter = await took(async () => {
      await page.getByLabel('Status').fill('4xx')
      await page.getByRole('button', { name: 'Filter' }).click()
      await rows(page).getByText('/status/418').waitFor()
    })
    await again
  },

  // 50 exchanges a second: each gets its row. Time from the end of the agent's exchange to its row.
  async latency (facts, open) {
    const page = await open('/live')
    await page.evaluate(watch)
    const ended = []
    const calls = []
    for (let number = 0; number < given.seconds * 50; number++) {
      calls.push(call(`${given.upstream}/json?number=${number}`, { keep: true }).then(() => {
        ended[number] = performance.timeOrigin + performance.now()
      }))
      await sleep(20)
    }
    await Promise.all(calls)
    await page.waitForFunction(count => Object.keys(window.watched.at).length === count, calls.length)
    const at = await page.evaluate(() => window.watched.at)
    const sorted = ended.map((end, number) => at[number] - end).sort((one, other) => one - other)
    const permille = share => Math.round(sorted[Math.ceil(sorted.length * share / 1000) - 1])
    facts.latency = { count: sorted.length, p50: permille(500), p99: permille(990), greatest: permille(1000) }
  }
}

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

const took = async act => {
  const begun = performance.now()
  await act()
  return Math.round(performance.now() - begun)
}

// In a page: what becomes of its rows, and how long it does nothing else.
function watch () {
  const watched = window.watched = { shown: 0, most: 0, at: {}, longestTask: 0, longestGap: 0 }
  const notShown = () => parseInt(document.querySelector('#stream .soft').textContent.replaceAll(',', '')) || 0
  watched.counted = () => watched.shown + notShown()
  new PerformanceObserver(list => {
    watched.longestTask = Math.max(watched.longestTask, ...list.getEntries().map(one => one.duration))
  }).observe({ type: 'longtask' })
  let last = performance.now()
  requestAnimationFrame(function frame () {
    const now = performance.now()
    watched.longestGap = Math.max(watched.longestGap, now - last)
    last = now
    requestAnimationFrame(frame)
  })
  const table = document.querySelector('#rows')
  new MutationObserver(changes => {
    const now = performance.timeOrigin + performance.now()
    for (const row of changes.flatMap(change => [...change.addedNodes])) {
      if (row.nodeName !== 'TR') continue
      watched.shown++
      const number = row.querySelector('a').textContent.match(/number=(\d+)/)?.[1]
      if (number) watched.at[number] = now
    }
    watched.most = Math.max(watched.most, table.childElementCount)
  }).observe(table, { childList: true })
}

// wrk through the proxy, at 10,000 requests a second if the machine allows it.
async function wrk (url, seconds) {
  const script = new URL('proxied.lua', import.meta.url).pathname
  const { stdout } = await promisify(execFile)('wrk', ['-t1', '-c60', `-d${seconds}s`, '-s', script, flags.proxy, '--', url, '5'])
  return JSON.parse(stdout.trim().split('\n').at(-1))
}

// Exchanges of the daemon so far, once there are no more.
async function exchanges () {
  for (let before = -1; ;) {
    const text = await (await fetch(flags.url + '/metrics')).text()
    const counts = [...text.matchAll(/^squall_exchanges_total\{.*\} (\d+)$/gm)].map(one => Number(one[1]))
    const now = counts.reduce((sum, one) => sum + one, 0)
    if (now === before) return now
    before = now
    await sleep(200)
  }
}

// Traffic of several kinds, and the explanation of a faulted exchange, from its top.
async function picturesque (page) {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Oslo to Rome?' }] })
  for (const path of ['/flights?from=OSL', '/flights?to=FCO&late', '/bookings/7']) {
    await call(`${given.upstream}/v1/chat/completions`, { method: 'POST', headers, body, scope: 'faulty' })
    await call(`${given.upstream}${path}`, { scope: 'faulty' })
  }
  await page.locator('#rows .request a', { hasText: 'FCO' }).click()
  await page.locator('#detail h2', { hasText: 'FCO' }).waitFor()
  await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0) })
  await page.mouse.move(0, 0)
}

// An agent that calls one URL again and again; the statuses that it has seen.
function calling (url) {
  const seen = new Set()
  let goes = true
  const loop = (async () => {
    while (goes) {
      seen.add(await call(url))
      await sleep(20)
    }
  })()
  const until = async status => {
    const deadline = performance.now() + flags.timeout * 1000
    while (!seen.has(status)) {
      if (performance.now() > deadline) throw new Error(`the agent never got ${status}, but ${[...seen]}`)
      await sleep(5)
    }
  }
  return { seen, until, stop: () => { goes = false; return loop } }
}

// Waits until the number in an element is above `least`.
async function above (page, selector, least) {
  const locator = page.locator(selector)
  const deadline = performance.now() + flags.timeout * 1000
  while (!(parseFloat(await locator.innerText()) > least)) {
    if (performance.now() > deadline) throw new Error(`${selector} is ${await locator.innerText()}`)
    await sleep(20)
  }
}

await run(facts => browse(facts, open => visits[flags.client](facts, open)), {})
