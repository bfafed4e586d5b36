// The page of the demo's shop, in a real browser: a click on Run demo, and what it raises. `--data` is the file for a
// picture.

import { flags, packages, run } from './told.mjs'

await run(async facts => {
  const { chromium } = (await packages('playwright-core')).default
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: flags.timeout * 3000
  })
  try {
    const page = await browser.newPage({ viewport: { width: 900, height: 760 } })
    page.setDefaultTimeout(flags.timeout * 1000)
    facts.asked = []
    facts.complaints = []
    page.on('request', request => facts.asked.push(request.url()))
    page.on('console', message => { if (message.type() === 'error') facts.complaints.push(message.text()) })
    page.on('pageerror', error => facts.complaints.push(String(error)))
    await page.goto(flags.url)

    const alerts = page.getByRole('alert')
    facts.before = await alerts.textContent()
    facts.buttons = await page.getByRole('button').allTextContents()
    // Every place of the cursor after a move, and the button under it.
    await page.evaluate(() => {
      window.places = []
      new MutationObserver(() => {
        const { left, top, width, height } = document.getElementById('cursor').getBoundingClientRect()
        const under = document.elementFromPoint(left + width / 2, top + height / 2)
        window.places.push(under?.textContent)
      }).observe(document.getElementById('cursor'), { attributes: true, attributeFilter: ['style'] })
    })
    await page.getByRole('button', { name: 'Run demo' }).click()
    await page.locator('[data-alert=oversold]').waitFor()
    await page.locator('[data-alert=slow]').waitFor()
    await page.getByRole('status').filter({ hasText: 'Demo done' }).waitFor()
    facts.places = await page.evaluate(() => window.places)
    facts.cursor = await page.locator('#cursor').isVisible()
    facts.alerts = await alerts.locator('p').allTextContents()
    facts.state = await page.locator('#state dd').allTextContents()
    facts.log = await page.locator('#log li').allTextContents()
    if (flags.data) await page.screenshot({ path: flags.data })

    // The keyboard alone: the button that has the focus, and the next one.
    await page.getByRole('button', { name: 'Normal mode' }).focus()
    await page.keyboard.press('Tab')
    facts.focused = await page.evaluate(() => document.activeElement.textContent)
    await page.keyboard.press('Enter')
    await page.locator('#alerts:empty').waitFor({ state: 'attached' })

    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    facts.backs = []
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      facts.backs.push(await back())
    }
  } finally {
    await browser.close()
  }
}, {})
