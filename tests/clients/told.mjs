// What the Node clients share: their arguments, where their packages lie, one JSON line.

import { parseArgs } from 'node:util'
import { packages } from '../node/packages.mjs'

export { packages }

const text = { type: 'string' }

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
    text,
    messages: { ...text, default: '0' },
    silence: { ...text, default: '2' },
    http1: { type: 'boolean', default: false },
    client: text,
    calls: { ...text, default: '[]' }
  }
}).values
flags.timeout = Number(flags.timeout)

// Resolves once all of it is written: what a pipe has not taken yet is lost when the process exits.
export function say (facts) {
  return new Promise(resolve => process.stdout.write(JSON.stringify(facts) + '\n', resolve))
}

// Calls `ask` with what it is to fill in as it goes. That is told, with the error that ended it
// before its time, if one did.
export async function run (ask, facts) {
  try {
    await ask(facts)
    await say({ ok: true, ...facts })
  } catch (error) {
    await say({ ok: false, error: error.constructor.name, said: error.message, ...facts })
  }
  process.exit(0)
}
