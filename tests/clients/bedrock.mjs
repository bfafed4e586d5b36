// A call to a model by the official `@aws-sdk/client-bedrock-runtime`, retrying as it does by itself.
//
// It speaks HTTP/2 and asks nobody, so that only a server that does understands it; with `--http1`, or
// through a proxy, it is told to use HTTP/1.1.

import { readFileSync } from 'node:fs'
import { flags, packages, run } from './told.mjs'

const aws = await packages('@aws-sdk/client-bedrock-runtime')

async function http1 () {
  if (!flags.http1 && !flags.proxy) return {}
  const { NodeHttpHandler } = await packages('@smithy/node-http-handler')
  if (!flags.proxy) return { requestHandler: new NodeHttpHandler() }
  const { HttpsProxyAgent } = await packages('https-proxy-agent')
  const ca = readFileSync(flags.ca)
  class Through extends HttpsProxyAgent {
    connect (request, options) {
      return super.connect(request, { ...options, ca })
    }
  }
  return { requestHandler: new NodeHttpHandler({ httpsAgent: new Through(flags.proxy) }) }
}

const client = new aws.BedrockRuntimeClient({
  endpoint: flags.url,
  region: 'us-east-1',
  credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
  ...await http1()
})
const modelId = 'eu.test.model-v1:0'
const words = [{ text: 'Say something.' }]
const conversation = { modelId, messages: [{ role: 'user', content: words }] }
const invocation = {
  modelId,
  body: JSON.stringify({ messages: [{ role: 'user', content: 'Say something.' }] })
}
const read = bytes => JSON.parse(new TextDecoder().decode(bytes))

async function converse (heard) {
  if (!flags.stream) {
    const answer = await client.send(new aws.ConverseCommand(conversation))
    heard.text = answer.output.message.content.map(block => block.text ?? '').join('')
    heard.finish = answer.stopReason
    heard.events.push({ ...answer, $metadata: null })
    return
  }
  const answer = await client.send(new aws.ConverseStreamCommand(conversation))
  for await (const event of answer.stream) {
    heard.text += event.contentBlockDelta?.delta.text ?? ''
    heard.finish = event.messageStop?.stopReason ?? heard.finish
    heard.events.push(event)
  }
}

async function invoke (heard) {
  if (!flags.stream) {
    const answer = await client.send(new aws.InvokeModelCommand(invocation))
    const said = read(answer.body)
    heard.text = said.choices[0].message.content
    heard.finish = said.choices[0].finish_reason
    heard.events.push(said)
    return
  }
  const answer = await client.send(new aws.InvokeModelWithResponseStreamCommand(invocation))
  for await (const event of answer.body) {
    const said = read(event.chunk.bytes)
    heard.text += said.choices[0].delta.content ?? ''
    heard.finish = said.choices[0].finish_reason ?? heard.finish
    heard.events.push(said)
  }
}

await run(flags.invoke ? invoke : converse, { text: '', finish: null, events: [] })
