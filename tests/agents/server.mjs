// Serves the agents of `shop.mjs` by HTTP: `POST /MODEL/NAME` with `{"input": PROMPT}`. Prints its port.

import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

import { models } from './models.mjs'
import { agents } from './shop.mjs'

const server = createServer(async (request, response) => {
  const [, model, name] = request.url.split('/')
  try {
    const asked = JSON.parse(await text(request))
    const agent = new agents[name](models[model], request.headers.baggage)
    answer(response, 200, { output: await agent.chat(asked.input) })
  } catch (error) {
    answer(response, 500, { error: `${error.constructor.name}: ${error.message}` })
  }
})

function answer (response, status, document) {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(document))
}

server.listen(0, '127.0.0.1', () => console.log(server.address().port))
