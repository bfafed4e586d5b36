// The dashboard's pages Profiles and Connect, in a real browser. `--client` names what the person does; `--data` is
// JSON: the `upstream` of an agent that has called, the folder for `pictures`.

import { against, browse, call } from './browser.mjs'
import { flags, run } from './told.mjs'

const given = JSON.parse(flags.data ?? '{}')
const picture = async (page, name, options = {}) => {
  if (given.pictures) await page.screenshot({ path: `${given.pictures}/dashboard-${name}.png`, ...options })
}
const press = (page, name) => page.getByRole('button', { name, exact: true }).click()

// Replaces the text of the editor.
async function write (page, text) {
  await page.locator('.cm-content').click()
  await page.keyboard.press('Control+A')
  // Chromium keeps the style of what it replaces in style attributes, to which the policy objects.
  await page.keyboard.press('Backspace')
  await page.keyboard.insertText(text)
}

const looks = async (facts, name, open, path) => {
  for (const [look, found] of Object.entries(await against(open, path))) facts.against[`${name}, ${look}`] = found
}

const rule = more => `tool_faults:\n  - mode: error\n    match_url: "*/json"\n    ${more}\n`

const visits = {
  async profiles (facts, open) {
    for (let calls = 0; calls < 8; calls++) await call(`${given.upstream}/json`)
    const page = await open('/profiles')
    facts.listed = await page.locator('main').innerText()
    await page.getByRole('link', { name: 'New profile' }).click()
    await page.getByLabel('Name').fill('flaky')

    await write(page, rule('probability: 0.5').replace('error', 'eror'))
    await press(page, 'Save')
    await page.locator('.cm-lint-marker-error').waitFor()
    facts.wrong = await page.locator('#errors').innerText()
    facts.marked = await page.locator('.cm-lintRange-error').innerText()
    await picture(page, 'profile-error')

    await write(page, rule('probability: 0.5'))
    await press(page, 'Dry run')
    facts.dryRun = await page.getByRole('region', { name: 'Dry run' }).innerText()
    await picture(page, 'dry-run')
    await press(page, 'Save')
    await page.getByText('Saved.').waitFor()
    facts.saved = new URL(page.url()).pathname

    await write(page, rule('probability: 0.9'))
    await press(page, 'Compare with the current text')
    facts.removed = await page.locator('.diff del').allInnerTexts()
    facts.added = await page.locator('.diff ins').allInnerTexts()
    await picture(page, 'profile-diff', { fullPage: true })
    await press(page, 'Save')
    await page.getByText('Saved.').waitFor()
    await press(page, 'Restore version 1')
    await page.getByText('Restored.').waitFor()
    facts.restored = await page.locator('.cm-content').innerText()
    facts.history = await page.getByRole('region', { name: 'History' }).innerText()

    await page.locator('.cm-content').click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText('    error_')
    await page.keyboard.press('Control+Space')
    await page.locator('.cm-tooltip-autocomplete li').first().waitFor()
    facts.completed = await page.locator('.cm-tooltip-autocomplete li').allInnerTexts()
    await picture(page, 'profile')

    const from = await open(`/profiles/new?from=${given.exchange}`)
    facts.from = await from.locator('.cm-content').innerText()
    await press(from, 'Dry run')
    facts.fromMatched = await from.getByRole('region', { name: 'Dry run' }).innerText()

    // Without scripts.
    const plain = await open('/profiles/flaky', { javaScriptEnabled: false })
    await plain.locator('#text').fill(rule('probability: 2'))
    await press(plain, 'Save')
    facts.plainWrong = await plain.getByRole('alert').innerText()
    facts.plainText = await plain.locator('#text').inputValue()
    await plain.locator('#text').fill(rule('probability: 0.25'))
    await press(plain, 'Save')
    facts.plainSaved = await plain.getByRole('status').filter({ hasText: 'Saved' }).innerText()

    facts.against = {}
    for (const path of ['/profiles', '/profiles/new', '/profiles/flaky', '/profiles/flaky?version=1']) await looks(facts, path, open, path)
  },

  async connect (facts, open) {
    const page = await open('/connect')
    facts.advice = await page.locator('.note').allInnerTexts()
    facts.connected = await page.getByRole('region', { name: 'Who has connected' }).innerText()
    facts.bash = await page.locator('#variables').innerText()
    await picture(page, 'connect', { fullPage: true })
    await page.getByLabel('Shell').selectOption('powershell')
    await page.getByLabel('Scope').fill('job-7')
    await press(page, 'Show')
    await page.waitForURL(/shell=powershell/)
    facts.powershell = await page.locator('#variables').innerText()
    facts.against = {}
    await looks(facts, 'connect', open, '/connect')
  }
}

await run(facts => browse(facts, open => visits[flags.client](facts, open)), {})
