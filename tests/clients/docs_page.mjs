// The page that describes the control API, in a real browser: what it shows, what it asks for, what a call
// that is tried from it is answered. `--token` is put into its field; `--operation` is the one to try.

import { flags, packages, run } from './told.mjs'

await run(async facts => {
  const { chromium } = (await packages('playwright-core')).default
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: flags.timeout * 3000
  })
  try {
    const page = await browser.newPage()
    page.setDefaultTimeout(flags.timeout * 1000)
    facts.asked = []
    facts.complaints = []
    page.on('request', request => facts.asked.push(request.url()))
    page.on('console', message => {
      // An answer that is an error is one of the things to be shown.
      const expected = message.text().startsWith('Failed to load resource: the server responded')
      if (message.type() === 'error' && !expected) facts.complaints.push(message.text())
    })
    page.on('pageerror', error => facts.complaints.push(String(error)))
    await page.goto(flags.url)
    await page.waitForSelector('.operation')
    facts.title = await page.title()

    const operations = page.locator('.operation')
    facts.shown = await operations.evaluateAll(all => all.map(one => ({
      id: one.id,
      method: one.querySelector('.method').textContent,
      path: one.querySelector('.path').textContent,
      role: one.querySelector('.role').textContent
    })))
    // Each opens, and so does everything in it down to its third level.
    facts.opened = await operations.evaluateAll(async all => {
      const toggled = () => new Promise(resolve => setTimeout(resolve))
      const drawn = {}
      for (const one of all) {
        one.open = true
        for (let level = 0; level < 3; level++) {
          await toggled()
          for (const inner of one.querySelectorAll('details:not([open])')) inner.open = true
        }
        await toggled()
        const texts = selector => [...one.querySelectorAll(selector)].map(found => found.textContent)
        drawn[one.id] = { parameters: texts('label code'), statuses: texts('td > b') }
        one.open = false
      }
      return drawn
    })

    const visible = () => operations.evaluateAll(all => all.filter(one => one.checkVisibility()).map(one => one.id))
    await page.keyboard.press('/')
    await page.keyboard.type('delete chaos')
    facts.found = await visible()
    await page.fill('#search', 'nothing-is-called-this')
    facts.none = await visible()
    await page.fill('#search', '')

    if (flags.operation) {
      await page.fill('#token', flags.token ?? '')
      const tried = page.locator(`#${flags.operation}`)
      await tried.locator('summary').first().click()
      for (const [name, value] of Object.entries(JSON.parse(flags.data ?? '{}'))) {
        await tried.locator(name === 'body' ? 'textarea' : `#${flags.operation}-${name}`).fill(value)
      }
      await tried.getByRole('button', { name: 'Send' }).click()
      await tried.locator('pre', { hasText: /^\d{3} / }).waitFor()
      await tried.getByRole('button', { name: 'Send' }).waitFor()
      facts.text = await tried.textContent()
      facts.answer = await tried.locator('pre').last().textContent()
    }
    facts.kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie])
  } finally {
    await browser.close()
  }
}, {})
