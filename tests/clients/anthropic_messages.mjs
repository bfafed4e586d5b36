// A message by the official `@anthropic-ai/sdk`. `--url` is its `baseURL`. Of a stream every event is
// told, as the client hands it out.

import { flags, packages, run } from './told.mjs'

const { default: Anthropic } = await packages('@anthropic-ai/sdk')
const client = new Anthropic({
  apiKey: 'sk-ant-test',
  baseURL: flags.url,
  maxRetries: flags.retries,
  timeout: flags.timeout * 1000
})
const request = {
  model: flags.model,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Say something.' }]
}
if (flags.tools) {
  request.tools = [{
    name: 'weather',
    description: 'The weather in a city.',
    input_schema: { type: 'object', properties: { city: { type: 'string' } } }
  }]
}

await run(async heard => {
  let answer
  if (flags.stream) {
    // The helper puts the message together and hands every event on.
    const stream = client.messages.stream(request)
    for await (const event of stream) {
      // As it is now: the helper goes on with the same objects.
      heard.events.push(JSON.parse(JSON.stringify(event)))
      heard.text += event.delta?.text ?? ''
    }
    answer = await stream.finalMessage()
  } else {
    answer = await client.messages.create(request)
  }
  const of = type => answer.content.filter(block => block.type === type)
  heard.text = of('text').map(block => block.text).join('')
  heard.thinking = of('thinking').map(block => [block.thinking, block.signature])
  heard.calls = of('tool_use').map(block => [block.name, block.input])
  heard.blocks = answer.content.length
  heard.finish = answer.stop_reason
  heard.usage = answer.usage.output_tokens
}, { text: '', events: [] })
