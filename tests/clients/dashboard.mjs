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
    await picture(page, 'live')
    facts.against = await against(open, '/live', {}, async page => {
      await page.locator('#rows a:visible').first().click()
      await page.getByRole('heading', { name: 'Rules' }).waitFor()
    })
  }
}

await run(facts => browse(facts, open => visits[flags.client](facts, open)), {})
