// What the Node clients share: their arguments, where their packages lie, one JSON line.

import { createRequire } from 'node:module'
import { parseArgs } from 'node:util'

const text = { type: 'string' }
const yes = { type: 'boolean', default: false }

export const flags = parseArgs({
  options: {
    url: text,
    proxy: text,
    ca: text,
    method: { ...text, default: 'GET' },
    data: text,
    timeout: { ...text, default: '20' },
    stream: yes,
    tools: yes,
    retries: { ...text, default: '0' }
  }
}).values
flags.timeout = Number(flags.timeout)

// The packages are in tests/node, beside their lock file.
const require = createRequire(new URL('../node/package.json', import.meta.url))

export async function packages (name) {
  const module = require(name)
  return module.default ? { ...module, default: module.default } : module
}

export function say (facts) {
  console.log(JSON.stringify(facts))
}
