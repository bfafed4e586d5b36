// Many calls at once by one official client for Node, as often as it asks by itself, on its own HTTP
// stack: what `many_calls.py` does with the clients for Python, told the same way.
//
// --client names it, --calls is a JSON list of calls: `model`, by which the answers are told, and
// optionally `stream`, `tools`, `previous`, and in seconds `timeout` and `patience`. Most clients bound only how long
// they wait for headers: the smallest `timeout` is how long a body may pause, in place of the 300 s that
// Node's fetch allows. After its `patience` a call is given up, whatever the client is at.

import { flags, packages, say } from './told.mjs'

const PROMPT = 'Say something.'
const MESSAGES = [{ role: 'user', content: PROMPT }]
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } } }
const WEATHER = { name: 'weather', description: 'The weather in a city.', parameters: PARAMETERS }
const FUNCTION = { type: 'function', function: WEATHER }

const seconds = () => performance.now() / 1000

// What a call brought, as far as it came.
class Heard {
  begun = seconds()
  first = null
  finish = null
  refusal = false
  pieces = []
  names = new Map()
  inputs = new Map()

  // The text of one answer, or of one event.
  piece (text, finish) {
    if (text) this.first ??= seconds() - this.begun
    this.pieces.push(text ?? '')
    this.finish = finish ?? this.finish
  }

  // A call of a tool, or a piece of its arguments as text.
  call (at, name, input) {
    this.names.set(at, name || (this.names.get(at) ?? null))
    if (typeof input === 'string') this.inputs.set(at, (this.inputs.get(at) ?? '') + input)
    else if (input != null) this.inputs.set(at, input)
  }

  facts () {
    return {
      text: this.pieces.join(''),
      pieces: this.pieces,
      finish: this.finish,
      refusal: this.refusal,
      names: [...this.names.values()],
      inputs: [...this.inputs.values()],
      first: this.first,
      took: seconds() - this.begun
    }
  }
}

// A chat completion by a client that was made as OpenAI's.
async function chat (client, heard, { model, stream, tools }) {
  const request = { model, messages: MESSAGES, stream, tools: tools ? [FUNCTION] : undefined }
  const answer = await client.chat.completions.create(request)
  for await (const one of stream ? answer : [answer]) choices(one, heard)
}

function choices (answer, heard) {
  for (const choice of answer.choices) {
    const said = choice.delta ?? choice.message
    heard.piece(said.content, choice.finish_reason ?? choice.finishReason)
    heard.refusal ||= Boolean(said.refusal)
    const calls = said.tool_calls ?? said.toolCalls ?? []
    calls.forEach((one, at) => heard.call(one.index ?? at, one.function.name, one.function.arguments))
  }
}

async function openaiClient () {
  const { default: OpenAI } = await packages('openai')
  return new OpenAI({ apiKey: 'sk-test', baseURL: flags.url })
}

async function groqClient () {
  const { default: Groq } = await packages('groq-sdk')
  return new Groq({ apiKey: 'gsk_test', baseURL: flags.url })
}

async function responses (client, heard, { model, stream, tools, previous }) {
  const request = { model, input: PROMPT, stream }
  if (previous) request.previous_response_id = previous
  if (tools) request.tools = [{ type: 'function', strict: false, ...WEATHER }]
  let answer = await client.responses.create(request)
  if (stream) {
    const events = answer
    answer = null
    for await (const event of events) {
      heard.piece(event.type === 'response.output_text.delta' ? event.delta : '')
      answer = event.response ?? answer
    }
  } else {
    heard.piece(answer.output_text)
  }
  heard.finish = answer?.status ?? null
  for (const item of answer?.output ?? []) {
    if (item.type === 'function_call') heard.call(item.id, item.name, item.arguments)
    else if (item.type === 'message') heard.refusal = item.content.some(part => part.type === 'refusal')
  }
}

async function anthropicClient () {
  const { default: Anthropic } = await packages('@anthropic-ai/sdk')
  return new Anthropic({ apiKey: 'sk-ant-test', baseURL: flags.url })
}

async function anthropic (client, heard, { model, stream, tools }) {
  const request = { model, max_tokens: 100, messages: MESSAGES, stream }
  if (tools) request.tools = [{ name: 'weather', description: 'The weather.', input_schema: PARAMETERS }]
  const answer = await client.messages.create(request)
  if (stream) {
    for await (const event of answer) {
      heard.piece(event.delta?.text, event.delta?.stop_reason)
      const block = event.content_block
      if (block?.type === 'tool_use') heard.call(event.index, block.name, null)
      if (event.delta?.partial_json) heard.call(event.index, null, event.delta.partial_json)
    }
    return
  }
  const words = answer.content.filter(block => block.type === 'text').map(block => block.text)
  heard.piece(words.join(''), answer.stop_reason)
  for (const block of answer.content) {
    if (block.type === 'tool_use') heard.call(block.id, block.name, block.input)
  }
}

async function googleClient () {
  const { GoogleGenAI } = await packages('@google/genai')
  return new GoogleGenAI({ apiKey: 'test-key', httpOptions: { baseUrl: flags.url } })
}

async function google (client, heard, { model, stream, tools, timeout }) {
  // It lifts the bounds of fetch.
  const config = timeout ? { httpOptions: { timeout: timeout * 1000 } } : {}
  if (tools) config.tools = [{ functionDeclarations: [{ name: 'weather', description: 'The weather.' }] }]
  const request = { model, contents: PROMPT, config }
  const answers = stream
    ? await client.models.generateContentStream(request)
    : [await client.models.generateContent(request)]
  for await (const answer of answers) {
    for (const candidate of answer.candidates ?? []) {
      const parts = candidate.content?.parts ?? []
      const words = parts.filter(part => !part.thought).map(part => part.text ?? '')
      heard.piece(words.join(''), candidate.finishReason)
      for (const { functionCall } of parts) {
        if (functionCall) heard.call(heard.names.size, functionCall.name, functionCall.args)
      }
    }
  }
}

async function ollamaClient () {
  const { Ollama } = await packages('ollama')
  return new Ollama({ host: flags.url })
}

async function ollama (client, heard, { model, stream, tools }) {
  const answer = await client.chat({ model, messages: MESSAGES, stream, tools: tools ? [FUNCTION] : undefined })
  for await (const { message, done_reason: reason } of stream ? answer : [answer]) {
    heard.piece(message.content, reason)
    for (const one of message.tool_calls ?? []) {
      heard.call(heard.names.size, one.function.name, one.function.arguments)
    }
  }
}

async function bedrockClient () {
  const aws = await packages('@aws-sdk/client-bedrock-runtime')
  const { NodeHttpHandler } = await packages('@smithy/node-http-handler')
  const options = { requestTimeout: silence * 1000 }
  return new aws.BedrockRuntimeClient({
    endpoint: flags.url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
    // By itself it speaks HTTP/2.
    requestHandler: flags.http1 ? new NodeHttpHandler(options) : options
  })
}

async function bedrock (client, heard, { model, stream, tools }) {
  const aws = await packages('@aws-sdk/client-bedrock-runtime')
  const request = { modelId: model, messages: [{ role: 'user', content: [{ text: PROMPT }] }] }
  if (tools) {
    const weather = { name: 'weather', inputSchema: { json: PARAMETERS } }
    request.toolConfig = { tools: [{ toolSpec: weather }] }
  }
  if (stream) {
    const answer = await client.send(new aws.ConverseStreamCommand(request))
    for await (const event of answer.stream) {
      heard.piece(event.contentBlockDelta?.delta?.text, event.messageStop?.stopReason)
    }
    return
  }
  const answer = await client.send(new aws.ConverseCommand(request))
  const blocks = answer.output.message.content
  heard.piece(blocks.map(block => block.text ?? '').join(''), answer.stopReason)
  for (const { toolUse } of blocks) {
    if (toolUse) heard.call(heard.names.size, toolUse.name, toolUse.input)
  }
}

async function mistralClient () {
  const { Mistral } = await packages('@mistralai/mistralai')
  return new Mistral({ apiKey: 'test', serverURL: flags.url })
}

async function mistralai (client, heard, { model, stream, tools }) {
  const request = { model, messages: MESSAGES, tools: tools ? [FUNCTION] : undefined }
  if (stream) {
    for await (const event of await client.chat.stream(request)) choices(event.data, heard)
  } else {
    choices(await client.chat.complete(request), heard)
  }
}

const CLIENTS = {
  openai: [openaiClient, chat],
  responses: [openaiClient, responses],
  anthropic: [anthropicClient, anthropic],
  google: [googleClient, google],
  ollama: [ollamaClient, ollama],
  bedrock: [bedrockClient, bedrock],
  mistralai: [mistralClient, mistralai],
  groq: [groqClient, chat]
}

// The HTTP status that the client says it got, by whatever name.
const status = error =>
  error.status ?? error.statusCode ?? error.status_code ?? error.$metadata?.httpStatusCode ?? null

class StillWaiting extends Error {}

const calls = JSON.parse(flags.calls)
const silence = Math.min(300, ...calls.map(call => call.timeout ?? 300))
const { Agent, setGlobalDispatcher } = await packages('undici')
setGlobalDispatcher(new Agent({ bodyTimeout: silence * 1000 }))
const [made, ask] = CLIENTS[flags.client]
const client = await made()

function givenUp (patience) {
  return new Promise((resolve, reject) => setTimeout(() => reject(new StillWaiting()), patience * 1000))
}

async function make (call) {
  const heard = new Heard()
  try {
    const asked = ask(client, heard, call)
    await (call.patience ? Promise.race([asked, givenUp(call.patience)]) : asked)
    return [call.model, { ok: true, ...heard.facts() }]
  } catch (error) {
    const facts = { error: error.constructor.name, status: status(error), said: error.message.slice(0, 500) }
    return [call.model, { ok: false, ...facts, ...heard.facts() }]
  }
}

await say(Object.fromEntries(await Promise.all(calls.map(make))))
process.exit(0)
