// A chat, or with `--generate` a prompt, by the official `ollama` client for Node. `--url` is its host.

import { flags, packages, run } from './told.mjs'

const { Ollama } = await packages('ollama')
const client = new Ollama({ host: flags.url })
const request = { model: 'qwen3', stream: flags.stream }
if (flags.tools) {
  const tool = name => ({ type: 'function', function: { name, description: name, parameters: { type: 'object' } } })
  request.tools = ['weather', 'time'].map(tool)
}
const ask = () => flags.generate
  ? client.generate({ ...request, prompt: 'Say something.' })
  : client.chat({ ...request, messages: [{ role: 'user', content: 'Say something.' }] })

await run(async heard => {
  const answer = await ask()
  for await (const line of flags.stream ? answer : [answer]) {
    const said = flags.generate ? line : line.message
    const words = (flags.generate ? line.response : said.content) ?? ''
    heard.lines.push(words)
    heard.text += words
    heard.thinking += said.thinking ?? ''
    for (const call of said.tool_calls ?? []) heard.calls.push([call.function.name, call.function.arguments])
    if (line.done) {
      heard.finish = line.done_reason
      heard.counts = [line.prompt_eval_count, line.eval_count]
    }
  }
}, { text: '', thinking: '', calls: [], lines: [], finish: null, counts: null })
