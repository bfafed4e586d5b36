// Calls of a model over WebSockets by the official OpenAI client for Node, one socket a call: what
// `model_socket_calls.py` does, printed the same way.

import { readFileSync } from 'node:fs'
import { flags, packages, say } from './told.mjs'

const WEATHER = { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: false }
const ENDS = ['response.completed', 'response.failed', 'response.incomplete']

const { default: OpenAI } = await packages('openai')
const { ResponsesWS } = await packages('openai/resources/responses/ws')
const { HttpsProxyAgent } = await packages('https-proxy-agent')
const client = new OpenAI({ apiKey: 'sk-test', baseURL: flags.url })
const options = { ca: flags.ca && readFileSync(flags.ca) }
if (flags.proxy) options.agent = new HttpsProxyAgent(flags.proxy, { ca: options.ca })

function take (event, facts) {
  if (event.type === 'response.output_text.delta') {
    facts.text += event.delta
    facts.pieces += 1
  }
  if (!ENDS.includes(event.type)) return
  facts.finish = event.response.status
  for (const item of event.response.output) {
    if (item.type === 'function_call') {
      facts.names.push(item.name)
      facts.inputs.push(item.arguments)
    } else if (item.type === 'message') {
      facts.refusal = item.content.some(part => part.type === 'refusal')
    }
  }
}

function make ({ model, tools, previous, timeout }) {
  const facts = { text: '', pieces: 0, finish: null, refusal: false, names: [], inputs: [] }
  const begun = performance.now()
  const request = { type: 'response.create', model, input: 'Say something.' }
  if (tools) request.tools = [WEATHER]
  if (previous) request.previous_response_id = previous
  const socket = new ResponsesWS(client, options)
  return new Promise(resolve => {
    const end = more => {
      Object.assign(facts, more, { took: (performance.now() - begun) / 1000 })
      resolve([model, facts])
      socket.close()
    }
    const silence = setTimeout(() => end({ waits: true }), 1000 * (timeout ?? flags.timeout))
    socket.socket.on('open', () => socket.send(request))
    socket.socket.on('close', closed => end({ closed }))
    socket.on('event', event => {
      silence.refresh()
      take(event, facts)
      if (facts.text) facts.first ??= (performance.now() - begun) / 1000
      const { error, status, headers } = event
      if (event.type === 'error') end({ finish: 'error', status, error, headers })
      else if (facts.finish) end({})
    })
    // The event has been taken; whatever else fails closes the socket.
    socket.on('error', () => {})
  })
}

await say(Object.fromEntries(await Promise.all(JSON.parse(flags.calls).map(make))))
process.exit(0)
