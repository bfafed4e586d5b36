// Models, asked by their providers' official clients, streamed.
//
// Each has `ask(messages, tools, headers)`: the text, the tools that the model wishes called, and whether the
// answer came to its end. Messages and wishes are in the form of OpenAI's chats, whoever is asked.

import { packages } from '../node/packages.mjs'

const { default: OpenAI } = await packages('openai')
const { default: Anthropic } = await packages('@anthropic-ai/sdk')
const { EnvHttpProxyAgent, setGlobalDispatcher } = await packages('undici')

// Node 20 reads no proxy variables; later ones do, with NODE_USE_ENV_PROXY.
setGlobalDispatcher(new EnvHttpProxyAgent())

const clients = { timeout: 20_000, maxRetries: 2 }

function wish ({ id, name, json }) {
  return { id, type: 'function', function: { name, arguments: json || '{}' } }
}

// Fetch says so by a TypeError when a stream breaks off.
async function heard (client, listen) {
  const answer = { text: '', calls: new Map(), finish: null }
  try {
    await listen(answer)
  } catch (error) {
    const cameFromTheWire = error instanceof client || (error instanceof TypeError && error.cause)
    if (!cameFromTheWire) throw error
    return { text: answer.text, calls: [], isWhole: false }
  }
  const calls = [...answer.calls.values()].map(wish)
  return { text: answer.text, calls, isWhole: answer.finish !== null }
}

// Chat completions, by `openai`.
class OpenAIModel {
  client = new OpenAI({ apiKey: 'test-key', baseURL: 'http://model.test/v1', ...clients })

  ask (messages, tools, headers) {
    const offered = tools && { tools: tools.map(tool => ({ type: 'function', function: tool })) }
    return heard(OpenAI.OpenAIError, async answer => {
      const body = { model: 'shop-1', messages, stream: true, ...offered }
      for await (const event of await this.client.chat.completions.create(body, { headers })) {
        for (const choice of event.choices) {
          answer.text += choice.delta.content ?? ''
          answer.finish = choice.finish_reason ?? answer.finish
          for (const part of choice.delta.tool_calls ?? []) {
            const call = answer.calls.get(part.index) ?? { id: '', name: '', json: '' }
            answer.calls.set(part.index, call)
            call.id = part.id ?? call.id
            call.name = part.function.name ?? call.name
            call.json += part.function.arguments ?? ''
          }
        }
      }
    })
  }
}

// Messages, by `@anthropic-ai/sdk`.
class AnthropicModel {
  client = new Anthropic({ apiKey: 'test-key', baseURL: 'http://model.test', ...clients })

  ask (messages, tools, headers) {
    const offered = tools && { tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })) }
    const system = messages.filter(one => one.role === 'system').map(one => one.content).join(' ')
    const told = system && { system }
    return heard(Anthropic.AnthropicError, async answer => {
      const body = { model: 'shop-1', max_tokens: 1000, messages: turns(messages), stream: true, ...offered, ...told }
      for await (const event of await this.client.messages.create(body, { headers })) {
        const { type, index, delta, content_block: block } = event
        if (type === 'content_block_start' && block.type === 'tool_use') {
          answer.calls.set(index, { id: block.id, name: block.name, json: '' })
        } else if (type === 'content_block_delta' && delta.type === 'text_delta') {
          answer.text += delta.text
        } else if (type === 'content_block_delta' && delta.type === 'input_json_delta') {
          answer.calls.get(index).json += delta.partial_json
        } else if (type === 'message_delta') {
          answer.finish = delta.stop_reason ?? answer.finish
        }
      }
    })
  }
}

// The messages as turns of blocks; results of tools are the user's.
function turns (messages) {
  const told = []
  for (const message of messages.filter(one => one.role !== 'system')) {
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    if (told.at(-1)?.role !== role) told.push({ role, content: [] })
    told.at(-1).content.push(...blocks(message))
  }
  return told
}

function blocks ({ role, content, tool_call_id: call, tool_calls: calls = [] }) {
  if (role === 'tool') return [{ type: 'tool_result', tool_use_id: call, content }]
  const said = content ? [{ type: 'text', text: content }] : []
  const wishes = calls.map(({ id, function: { name, arguments: json } }) =>
    ({ type: 'tool_use', id, name, input: JSON.parse(json) }))
  return [...said, ...wishes]
}

export const models = { openai: new OpenAIModel(), anthropic: new AnthropicModel() }
