// What the clients in a real browser share: a browser that complains, axe, and an agent that calls through the proxy.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Agent, request } from 'node:http'

import { flags, packages } from './told.mjs'

const axe = readFileSync(createRequire(new URL('../node/packages.mjs', import.meta.url)).resolve('axe-core'), 'utf8')

// Calls `use` with a function that opens a page; what pages complain about goes into `facts.complaints`.
export async function browse (facts, use) {
  const { chromium } = (await packages('playwright-core')).default
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--enable-precise-memory-info', '--js-flags=--expose-gc'],
    timeout: flags.timeout * 3000
  })
  facts.complaints = []
  facts.dialogs = 0
  facts.asked = []
  try {
    await use(async (path, options = {}) => {
      const context = options.context ?? await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
      const page = await context.newPage()
      page.setDefaultTimeout(flags.timeout * 1000)
      page.on('request', request => facts.asked.push(request.url()))
      page.on('console', message => {
        const expected = message.text().startsWith('Failed to load resource: the server responded')
        if (message.type() === 'error' && !expected) facts.complaints.push(message.text())
      })
      page.on('pageerror', error => facts.complaints.push(String(error)))
      page.on('dialog', dialog => { facts.dialogs++; return dialog.dismiss() })
      await page.goto(flags.url + path)
      return page
    })
  } finally {
    await browser.close()
  }
}

// What axe has against a page that is open: by day, by night, and on a phone. `prepare` brings each copy into the state
// that is looked at.
export async function against (open, path, options = {}, prepare = async () => {}) {
  const found = {}
  for (const [name, look] of [
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['phone', { colorScheme: 'light', viewport: { width: 360, height: 740 } }]
  ]) {
    const page = await open(path, { ...options, ...look, bypassCSP: true })
    await prepare(page)
    await page.evaluate(axe)
    const looked = await page.evaluate(() => window.axe.run())
    found[name] = looked.violations.map(one => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`)
    // A page is never wider than its window.
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    if (beyond > 0) found[name].push(`${beyond} px beyond the window`)
    await page.context().close()
  }
  return found
}

const kept = new Agent({ keepAlive: true })

// One call through the proxy, with `keep` on a connection that is kept; the status that the agent gets, or the error's code.
export function call (url, { keep, scope, method = 'GET', headers = {}, body } = {}) {
  const proxy = new URL(flags.proxy)
  const all = { host: new URL(url).host, ...headers }
  if (scope) all['x-squall-scope'] = scope
  return new Promise(resolve => {
    const asked = request({ host: proxy.hostname, port: proxy.port, path: url, method, headers: all, agent: keep && kept }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode))
      answer.on('error', error => resolve(error.code))
    })
    asked.on('error', error => resolve(error.code))
    asked.end(body)
  })
}
