// The pages Runs and Recordings of the dashboard, in a real browser, as a person uses them. `--client` names what the
// person does; `--data` is JSON: the `upstream` of the agent, the folder for `pictures`, ids of runs, a token.

import { against, browse, call } from './browser.mjs'
import { flags, run } from './told.mjs'

const given = JSON.parse(flags.data ?? '{}')
const picture = async (page, name) => {
  if (given.pictures) await page.screenshot({ path: `${given.pictures}/dashboard-${name}.png`, animations: 'disabled' })
}
const text = (page, selector) => page.locator(selector).innerText()
const verdict = (page, word) => page.locator('#run .verdict', { hasText: word }).waitFor()

async function start (page, suite, { kind = 'contract', seed = '7' } = {}) {
  await page.goto(flags.url + '/runs')
  const form = page.locator('form[method=post][action="/runs"]')
  await form.locator('[name=suite_name]').selectOption(suite)
  await form.locator('[name=kind]').selectOption(kind)
  await form.getByLabel('Seed').fill(seed)
  await form.getByRole('button', { name: 'Start' }).click()
  await page.waitForURL(/[/]runs[/]./)
}

const visits = {
  // A run is started, fills, and is read; two are compared; one is approved, one is cancelled.
  async runs (facts, open) {
    const page = await open('/runs')
    facts.empty = await text(page, 'main')
    await start(page, 'weather')
    const path = new URL(page.url()).pathname
    await page.locator('#run .cell').first().waitFor()
    facts.filling = await page.locator('#run .cell').allInnerTexts()
    facts.progress = await text(page, '#progress')
    await picture(page, 'run-live')
    facts.againstLive = await against(open, path, {}, page => page.locator('#run .cell').first().waitFor())
    await call(`${given.upstream}/release`)
    await verdict(page, 'failed')
    facts.cells = await page.locator('.report .cell').allInnerTexts()
    await page.locator('a.cell.failed').click()
    facts.evidence = await text(page, 'article.failed')
    facts.reports = {}
    for (const format of ['html', 'json', 'junit', 'markdown', 'jsonl']) {
      const got = await page.request.get(`${flags.url}${path}/report?format=${format}`)
      facts.reports[format] = [got.status(), (await got.text()).includes('says-so')]
    }
    const whole = await open(`${path}/report?format=html`, { context: page.context() })
    facts.styled = await whole.evaluate(() => getComputedStyle(document.querySelector('.cell.failed')).backgroundColor)
    await whole.close()
    await page.evaluate(() => scrollTo(0, 0))
    await picture(page, 'run')
    facts.againstRun = await against(open, path)
    await page.getByRole('link', { name: 'exchanges', exact: true }).click()
    await page.locator('#rows tr').first().waitFor()
    facts.exchanges = { run: await page.getByLabel('Run').inputValue(), rows: await page.locator('#rows tr').count() }

    await start(page, 'weather', { seed: '8' })
    await verdict(page, 'passed')
    await page.goto(flags.url + '/runs?suite=weather')
    for (const box of await page.getByRole('checkbox').all()) await box.check()
    await page.getByRole('button', { name: 'Compare two' }).click()
    await page.getByRole('heading', { name: 'Two runs compared' }).waitFor()
    facts.comparison = await text(page, '.report')
    facts.againstComparison = await against(open, new URL(page.url()).pathname + new URL(page.url()).search)

    await page.goto(flags.url + '/runs/trend?suite=weather')
    await page.locator('canvas').nth(1).waitFor()
    facts.trend = await text(page, 'table')
    await picture(page, 'trend')
    facts.againstTrend = await against(open, '/runs/trend?suite=weather')

    await start(page, 'guarded')
    await page.getByText('awaiting approval').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await verdict(page, 'passed')
    await start(page, 'hangs')
    await page.getByText('running').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await verdict(page, 'cancelled')
    await page.goto(flags.url + '/runs')
    facts.list = await page.locator('tbody tr').allInnerTexts()
    await picture(page, 'runs')
    facts.against = await against(open, '/runs')
  },

  // A form with an error is shown again.
  async wrong (facts, open) {
    const page = await open('/runs')
    const form = page.locator('form[method=post][action="/runs"]')
    await form.locator('[name=kind]').selectOption('contract')
    await form.getByLabel('Seed').fill('99999999999999999999999')
    await form.getByRole('button', { name: 'Start' }).click()
    facts.error = await text(page, '.problem')
    facts.kept = await form.getByLabel('Seed').inputValue()
  },

  // A viewer reads everything, and sees no button that changes anything.
  async viewer (facts, open) {
    const page = await open('/login?next=/runs')
    await page.getByLabel('Token').fill(given.token)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.waitForURL(/[/]runs/)
    facts.buttons = []
    facts.posts = []
    for (const path of ['/runs', `/runs/${given.run}`, '/recordings', `/recordings/${given.recording}`]) {
      await page.goto(flags.url + path)
      facts.buttons.push(...await page.locator('main button').allInnerTexts())
      facts.posts.push(...await page.locator('main form[method=post]').evaluateAll(all => all.map(one => one.action)))
    }
    facts.read = await text(page, 'main')
    const csrf = await page.locator('input[name=csrf]').first().inputValue()
    const forged = await page.request.post(`${flags.url}/runs/${given.run}/cancel`, { form: { csrf } })
    facts.forged = forged.status()
  },

  // What a hostile agent and a hostile suite say stays text.
  async hostile (facts, open) {
    for (const path of ['/runs', `/runs/${given.run}`, `/runs/trend?suite=${encodeURIComponent(given.suite)}`]) {
      const page = await open(path)
      await page.waitForLoadState('networkidle')
      facts[path.startsWith('/runs/trend') ? 'trend' : path === '/runs' ? 'list' : 'run'] = await text(page, 'main')
      facts.elements = (facts.elements ?? 0) + await page.locator('main :is(script, img, iframe)').count()
    }
  },

  // A scope is recorded, played back and stopped; explorations and replays are read.
  async recordings (facts, open) {
    const page = await open('/recordings')
    await page.getByLabel('Scope').fill('shop')
    await page.getByLabel('Name').fill('Checkout')
    await page.getByRole('button', { name: 'Record' }).click()
    await page.getByRole('button', { name: 'Stop recording' }).waitFor()
    facts.called = [await call(`${given.upstream}/json`, { scope: 'shop' }), await call(`${given.upstream}/status/404`, { scope: 'shop' })]
    await page.getByRole('button', { name: 'Stop recording' }).click()
    await page.getByText('stopped').waitFor()
    await page.getByRole('link', { name: 'Checkout' }).click()
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    const session = new URL(page.url()).pathname
    facts.timeline = await page.locator('tbody tr').allInnerTexts()
    await picture(page, 'timeline')
    facts.againstTimeline = await against(open, session)
    await page.getByLabel('Play as the tape of scope').fill('shop')
    await page.getByRole('button', { name: 'Play' }).click()
    await page.getByRole('button', { name: 'Stop the tape' }).waitFor()
    facts.played = [await call(`${given.upstream}/json`, { scope: 'shop' }), await call(`${given.upstream}/other`, { scope: 'shop' })]
    await page.reload()
    facts.tape = await page.locator('tbody tr').first().innerText()
    await picture(page, 'recordings')
    facts.against = await against(open, '/recordings')
    await page.getByRole('button', { name: 'Stop the tape' }).click()
    await page.getByRole('button', { name: 'Stop the tape' }).waitFor({ state: 'detached' })
    facts.after = await call(`${given.upstream}/other`, { scope: 'shop' })

    await page.goto(`${flags.url}/replays/${given.session}`)
    facts.stored = await text(page, 'main')
    await page.goto(`${flags.url}/runs/${given.replay}`)
    facts.replay = await text(page, 'section[aria-labelledby=replays]')
    await page.locator('#replays').evaluate(one => one.scrollIntoView())
    await picture(page, 'replay')
    await page.goto(`${flags.url}/runs/${given.exploration}`)
    facts.heat = await text(page, 'section[aria-labelledby=heat]')
    await page.locator('#heat').evaluate(one => one.scrollIntoView())
    await picture(page, 'exploration')
    facts.againstHeat = await against(open, `/runs/${given.exploration}`)
  }
}

await run(facts => browse(facts, open => visits[flags.client](facts, open)), {})
