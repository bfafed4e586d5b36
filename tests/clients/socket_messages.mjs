// Asks for messages over a WebSocket by `ws`: what `socket_messages.py` does, printed the same way.

import { readFileSync } from 'node:fs'
import { flags, packages, run } from './told.mjs'

const { default: WebSocket } = await packages('ws')
const { HttpsProxyAgent } = await packages('https-proxy-agent')
const options = { ca: flags.ca && readFileSync(flags.ca), perMessageDeflate: false }
if (flags.proxy) options.agent = new HttpsProxyAgent(flags.proxy, { ca: options.ca })

function talk (facts) {
  const socket = new WebSocket(flags.url, options)
  const begun = performance.now()
  const silence = 1000 * flags.silence
  return new Promise((resolve, reject) => {
    const bye = () => {
      socket.close(1000, 'bye')
      ending = setTimeout(() => socket.terminate(), silence)
    }
    const ping = () => {
      socket.ping()
      ending = setTimeout(bye, silence)
    }
    let ending
    let waiting = setTimeout(ping, silence)
    socket.on('open', () => socket.send(flags.text))
    socket.on('message', text => {
      clearTimeout(waiting)
      facts.messages.push(text.toString())
      waiting = setTimeout(ping, silence)
      if (facts.messages.length < flags.messages) return
      clearTimeout(waiting)
      facts.took = (performance.now() - begun) / 1000
      ping()
    })
    socket.on('pong', () => {
      clearTimeout(ending)
      facts.pong = true
      bye()
    })
    socket.on('close', code => {
      facts.closed = code
      clearTimeout(waiting)
      clearTimeout(ending)
      resolve()
    })
    socket.on('error', reject)
  })
}

await run(talk, { messages: [], pong: false, closed: null })
