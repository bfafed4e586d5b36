// A response by the official `openai` client for Node. `--url` is its `baseURL`. Of a stream every event
// is told, as the client hands it out.

import { flags, packages, run } from './told.mjs'

const { default: OpenAI } = await packages('openai')
const client = new OpenAI({
  apiKey: 'sk-test',
  baseURL: flags.url,
  maxRetries: flags.retries,
  timeout: flags.timeout * 1000
})
const request = { model: flags.model, input: 'Say something.' }
if (flags.tools) {
  request.tools = [
    {
      type: 'function',
      name: 'weather',
      description: 'The weather in a city.',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      strict: false
    },
    { type: 'custom', name: 'shell', description: 'A command line.' }
  ]
}

await run(async heard => {
  let answer
  if (flags.stream) {
    for await (const event of await client.responses.create({ ...request, stream: true })) {
      heard.events.push(event)
      heard.text += event.type === 'response.output_text.delta' ? event.delta : ''
      answer = event.response ?? answer
    }
  } else {
    answer = await client.responses.create(request)
    heard.text = answer.output_text
  }
  const calls = answer.output.filter(item => item.call_id)
  heard.calls = calls.map(item => [item.name, item.arguments ?? item.input])
  heard.finish = answer.status
  heard.reason = answer.incomplete_details?.reason ?? null
  heard.usage = answer.usage?.output_tokens ?? null
}, { text: '', events: [] })
