// The archive that Chromium's DevTools exports of a page: `node chromium.mjs URL FILE`.

import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(new URL('../node/package.json', import.meta.url))
const { chromium } = require('playwright-core')
const [url, file] = process.argv.slice(2)
const port = 9333
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage', `--remote-debugging-port=${port}`, '--remote-allow-origins=*']
})
try {
  const page = await browser.newPage()
  const targets = await (await fetch(`http://127.0.0.1:${port}/json`)).json()
  const { id } = targets.find(target => target.type === 'page' && target.url === 'about:blank')
  const tools = await browser.newPage()
  await tools.goto(`devtools://devtools/bundled/devtools_app.html?ws=127.0.0.1:${port}/devtools/page/${id}&panel=network`)
  const count = () => tools.evaluate(async () => {
    const logs = await import('devtools://devtools/bundled/models/logs/logs.js')
    return logs.NetworkLog.NetworkLog.instance().requests().length
  })
  while (await count().catch(() => -1) < 0) await new Promise(resolve => setTimeout(resolve, 100))
  await new Promise(resolve => setTimeout(resolve, 1000))
  await page.goto(url)
  await page.waitForFunction(() => document.title === 'done')
  const log = await tools.evaluate(async () => {
    const logs = await import('devtools://devtools/bundled/models/logs/logs.js')
    const har = await import('devtools://devtools/bundled/models/har/har.js')
    const requests = logs.NetworkLog.NetworkLog.instance().requests()
    let text = ''
    const progress = { isCanceled: () => false, canceled: false, createSubProgress: () => progress }
    for (const name of ['setTitle', 'setTotalWork', 'setWorked', 'incrementWorked', 'done']) progress[name] = () => {}
    const stream = { write: async part => { text += part }, close: async () => {} }
    await har.Writer.Writer.write(stream, requests, { sanitize: false }, progress)
    return text
  })
  writeFileSync(file, log)
} finally {
  await browser.close()
}
