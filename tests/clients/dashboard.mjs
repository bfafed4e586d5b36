// The dashboard, in a real browser, as a person uses it while an agent calls through the proxy. `--client` names what
// the person does; `--data` is JSON: the `upstream` of the agent, the folder for `pictures`, tokens.

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

  // As many exchanges as the proxy gives: the page goes on answering, and does not grow.
  async load (facts, open) {
    const page = await open('/live')
    const session = await page.context().newCDPSession(page)
    const heap = async () => {
      await session.send('HeapProfiler.collectGarbage')
      return (await session.send('Runtime.getHeapUsage')).usedSize
    }
    await page.evaluate(() => {
      window.tasks = []
      new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(one => one.duration))).observe({ type: 'longtask' })
    })
    const began = performance.now()
    let calls = 0
    const until = seconds => performance.now() - began < seconds * 1000
    const agents = Array.from({ length: 48 }, async () => {
      while (until(given.seconds)) { await call(`${given.upstream}/json`, { keep: true }); calls++ }
    })
    await page.getByText('not shown').waitFor()
    const early = await heap()
    let most = 0
    while (until(given.seconds - 1)) {
      most = Math.max(most, await rows(page).count())
      await new Promise(resolve => setTimeout(resolve, 200))
    }
    // A click while they come.
    const clicked = performance.now()
    await page.getByRole('link', { name: 'Pause' }).click()
    await page.getByText('Paused').waitFor()
    facts.clickMs = Math.round(performance.now() - clicked)
    await Promise.all(agents)
    facts.rows = most
    facts.grownBytes = await heap() - early
    facts.perSecond = Math.round(calls / given.seconds)
    facts.longTasks = await page.evaluate(() => ({ count: window.tasks.length, longest: Math.round(Math.max(0, ...window.tasks)) }))
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
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })()
  const until = async status => {
    const deadline = performance.now() + flags.timeout * 1000
    while (!seen.has(status)) {
      if (performance.now() > deadline) throw new Error(`the agent never got ${status}, but ${[...seen]}`)
      await new Promise(resolve => setTimeout(resolve, 5))
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
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

await run(facts => browse(facts, open => visits[flags.client](facts, open)), {})
