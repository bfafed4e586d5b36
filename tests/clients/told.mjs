// What the Node clients share: their arguments, where their packages lie, one JSON line.

import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { packages } from '../node/packages.mjs'

export { packages }

const text = { type: 'string' }
const yes = { type: 'boolean', default: false }

export const flags = parseArgs({
  options: {
    url: text,
    token: text,
    operation: text,
    proxy: text,
    ca: text,
    method: { ...text, default: 'GET' },
    data: text,
    timeout: { ...text, default: '20' },
    stream: yes,
    tools: yes,
    generate: yes,
    invoke: yes,
    http1: yes,
    client: text,
    calls: { ...text, default: '[]' },
    model: { ...text, default: 'test-model' },
    retries: { ...text, default: '0' },
    attempts: { ...text, default: '1' }
  }
}).values
flags.timeout = Number(flags.timeout)
flags.retries = Number(flags.retries)
flags.attempts = Number(flags.attempts)

// Node's own fetch, on which most clients stand, asks a dispatcher that all copies of undici share.
export async function throughProxy () {
  if (!flags.proxy) return
  const { ProxyAgent, setGlobalDispatcher } = await packages('undici')
  setGlobalDispatcher(new ProxyAgent({
    uri: flags.proxy,
    requestTls: { ca: flags.ca && readFileSync(flags.ca) },
    proxyTunnel: flags.url.startsWith('https:')
  }))
}

// Resolves once all of it is written: what a pipe has not taken yet is lost when the process exits.
export function say (facts) {
  return new Promise(resolve => process.stdout.write(JSON.stringify(facts) + '\n', resolve))
}

// Calls `ask` with what it is to fill in as it goes. That is told, with the error that ended it
// before its time, if one did.
export async function run (ask, facts) {
  await throughProxy()
  try {
    await ask(facts)
    await say({ ok: true, ...facts })
  } catch (error) {
    await say({
      ok: false,
      error: error.constructor.name,
      status: error.status ?? error.statusCode ?? error.status_code ?? error.$metadata?.httpStatusCode ?? null,
      code: error.cause?.code ?? error.code ?? null,
      type: error.type ?? null,
      said: error.message,
      ...facts
    })
  }
  process.exit(0)
}
