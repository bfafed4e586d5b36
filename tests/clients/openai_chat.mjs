// A chat completion by the official `openai` client for Node, on undici's fetch.

import { readFileSync } from 'node:fs'
import { flags, packages, say } from './told.mjs'

const { default: OpenAI } = await packages('openai')
const { ProxyAgent } = await packages('undici')
const undici = await packages('undici')

const dispatcher = flags.proxy && new ProxyAgent({
  uri: flags.proxy,
  requestTls: { ca: flags.ca && readFileSync(flags.ca) },
  proxyTunnel: flags.url.startsWith('https:')
})
const client = new OpenAI({
  apiKey: 'sk-test',
  baseURL: flags.url,
  maxRetries: Number(flags.retries),
  timeout: flags.timeout * 1000,
  fetch: undici.fetch,
  fetchOptions: dispatcher ? { dispatcher } : {}
})
const request = {
  model: 'test-model',
  messages: [{ role: 'user', content: 'Say something.' }]
}

let heard = ''
let events = 0
try {
  if (flags.stream) {
    let finish = null
    for await (const event of await client.chat.completions.create({ ...request, stream: true })) {
      events += 1
      heard += event.choices[0]?.delta?.content ?? ''
      finish = event.choices[0]?.finish_reason ?? finish
    }
    await say({ ok: true, text: heard, finish, events })
  } else {
    const answer = await client.chat.completions.create(request)
    await say({ ok: true, text: answer.choices[0].message.content, finish: answer.choices[0].finish_reason })
  }
} catch (error) {
  await say({
    ok: false,
    error: error.constructor.name,
    status: error.status ?? null,
    code: error.code ?? error.cause?.code ?? null,
    after: heard,
    events,
    text: error.message
  })
}
process.exit(0)
