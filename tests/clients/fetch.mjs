// One exchange by Node's fetch (undici), with a proxy agent where there is a proxy.

import { readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { flags, packages, say } from './told.mjs'

const { fetch, Agent, ProxyAgent } = await packages('undici')
const ca = flags.ca && readFileSync(flags.ca)
const timeouts = { headersTimeout: flags.timeout * 1000, bodyTimeout: flags.timeout * 1000 }
const dispatcher = flags.proxy
  ? new ProxyAgent({ uri: flags.proxy, requestTls: { ca }, proxyTunnel: flags.url.startsWith('https:'), ...timeouts })
  : new Agent(timeouts)

try {
  const answer = await fetch(flags.url, {
    dispatcher,
    method: flags.method,
    body: flags.data,
    redirect: 'manual'
  })
  const body = Buffer.from(await answer.arrayBuffer())
  await say({
    ok: true,
    status: answer.status,
    headers: [...answer.headers],
    length: body.length,
    sha256: createHash('sha256').update(body).digest('hex'),
    text: body.subarray(0, 2000).toString()
  })
} catch (error) {
  await say({
    ok: false,
    error: error.message,
    cause: error.cause?.code ?? error.cause?.name ?? null,
    text: String(error.cause?.message ?? '')
  })
}
process.exit(0)
