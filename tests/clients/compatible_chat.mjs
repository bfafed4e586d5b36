// A chat completion by an official Node client of a provider that speaks OpenAI's format.
//
// --client is `groq` or `mistralai`; each retries as it does by itself.

import { flags, packages, run } from './told.mjs'

const messages = [{ role: 'user', content: 'Say something.' }]

async function groq () {
  const { default: Groq } = await packages('groq-sdk')
  const client = new Groq({ apiKey: 'gsk_test', baseURL: flags.url, timeout: flags.timeout * 1000 })
  return client.chat.completions.create({ model: flags.model, messages, stream: flags.stream })
}

async function mistralai () {
  const { Mistral } = await packages('@mistralai/mistralai')
  const client = new Mistral({ apiKey: 'test', serverURL: flags.url, timeoutMs: flags.timeout * 1000 })
  const request = { model: flags.model, messages }
  return flags.stream ? client.chat.stream(request) : client.chat.complete(request)
}

await run(async heard => {
  const answer = await { groq, mistralai }[flags.client]()
  for await (const event of flags.stream ? answer : [answer]) {
    const said = event.data ?? event
    const [choice] = said.choices
    heard.text += (choice?.delta ?? choice?.message)?.content ?? ''
    heard.finish = choice?.finish_reason ?? choice?.finishReason ?? heard.finish
    heard.events.push(said)
  }
}, { text: '', finish: null, events: [] })
