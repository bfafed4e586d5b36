// A report as a page, in a real browser: whether anything in it runs or asks for anything, what it shows, and what
// axe has against it by day, by night and on paper.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

import { flags, packages, run } from './told.mjs'

const axe = readFileSync(createRequire(new URL('../node/packages.mjs', import.meta.url)).resolve('axe-core'), 'utf8')

// What of an A4 page, 17 cm between its margins, is to be scrolled to: paper cannot.
function beyondThePaper () {
  document.body.style.width = '17cm'
  return [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)
    .map(one => `${one.getAttribute('aria-label')}: ${one.scrollWidth} of ${one.clientWidth}`)
}

// Numbers that stand on two lines or more: a word of digits that the page has broken.
function brokenNumbers () {
  const broken = []
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const text = texts.currentNode
    if (text.parentElement.closest('pre, code, svg')) continue
    for (const found of text.data.matchAll(/(?<=^|\s)\d+(\.\d+)?(?=$|[\s,;:%])/g)) {
      const range = document.createRange()
      range.setStart(text, found.index)
      range.setEnd(text, found.index + found[0].length)
      const lines = new Set([...range.getClientRects()].map(one => Math.round(one.top)))
      if (lines.size > 1) broken.push(`${found[0]} of "${text.data.slice(0, 40)}"`)
    }
  }
  return broken
}

await run(async facts => {
  const { chromium } = (await packages('playwright-core')).default
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: flags.timeout * 3000
  })
  try {
    facts.asked = []
    facts.complaints = []
    facts.dialogs = 0
    const open = async options => {
      const page = await browser.newPage(options)
      page.setDefaultTimeout(flags.timeout * 1000)
      page.on('request', request => facts.asked.push(request.url()))
      page.on('console', message => facts.complaints.push(message.text()))
      page.on('pageerror', error => facts.complaints.push(String(error)))
      page.on('dialog', dialog => { facts.dialogs++; return dialog.dismiss() })
      await page.goto(flags.url)
      return page
    }
    const page = await open({ colorScheme: 'light' })
    facts.title = await page.title()
    facts.elements = await page.evaluate(() => [...new Set([...document.querySelectorAll('*')].map(one => one.localName))])
    facts.handlers = await page.evaluate(() => [...document.querySelectorAll('*')]
      .flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on') || name === 'style'))
    facts.links = await page.evaluate(() => [...document.querySelectorAll('[href], [src]')]
      .map(one => one.getAttribute('href') ?? one.getAttribute('src')))
    facts.said = await page.locator('pre').allTextContents()
    facts.broken = await page.evaluate(() => [...document.querySelectorAll('a[href^="#"]')]
      .filter(one => !document.getElementById(one.getAttribute('href').slice(1))).length)
    facts.numbers = {}
    for (const [name, width, media] of [['360', 360], ['800', 800], ['1200', 1200], ['print', 642, 'print']]) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ media: media ?? 'screen' })
      facts.numbers[name] = await page.evaluate(brokenNumbers)
    }
    facts.figures = await page.locator('.figure').allTextContents()
    facts.ticks = await page.evaluate(() => [...document.querySelectorAll('.lead, .reason, .do, .warn')]
      .map(one => one.textContent).filter(text => (text.match(/`/g) ?? []).length > 1))
    await page.setViewportSize({ width: 1280, height: 720 })
    await page.emulateMedia({ media: 'screen' })
    // Every link is reached by keyboard, from the first one on.
    await page.keyboard.press('Tab')
    facts.first = await page.evaluate(() => document.activeElement.textContent)
    // The page itself would run nothing: what looks at it has the policy out of its way, and only that.
    facts.against = {}
    for (const [name, media] of [['light', {}], ['dark', { colorScheme: 'dark' }], ['print', { media: 'print' }]]) {
      const looked = await open({ colorScheme: media.colorScheme ?? 'light', bypassCSP: true })
      if (media.media) await looked.emulateMedia(media)
      await looked.evaluate(() => document.querySelectorAll('details').forEach(one => { one.open = true }))
      if (media.media) facts.cut = await looked.evaluate(beyondThePaper)
      await looked.evaluate(axe)
      const found = await looked.evaluate(() => window.axe.run())
      facts.against[name] = found.violations.map(one => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`)
      facts.checked = (facts.checked ?? 0) + found.passes.length
      await looked.close()
    }
  } finally {
    await browser.close()
  }
}, {})
