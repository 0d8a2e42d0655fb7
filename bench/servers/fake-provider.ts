/** A provider that answers after a chosen time: the direct call that the router is measured against. */
import { createServer } from 'node:http'
import { listenForParent, readSettings } from '../kit/server-child.ts'

const { latencyMs = 0 } = readSettings<{ latencyMs?: number }>()
const PICTURE = Buffer.from(JSON.stringify({ id: 'generation', images: [{ seed: 42, width: 1024, height: 1024 }] }))
const CHAT = Buffer.from(
  JSON.stringify({
    ...{ id: 'chat-1', object: 'chat.completion', created: 1_700_000_000, model: 'bench' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'A lighthouse at dusk.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 6, total_tokens: 15, cost: 0.000_05 },
  }),
)

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const bytes = request.url?.endsWith('/chat/completions') === true ? CHAT : PICTURE
    const answer = () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
      response.end(bytes)
    }
    if (latencyMs === 0) answer()
    else setTimeout(answer, latencyMs)
  })
})
server.keepAliveTimeout = 60_000
listenForParent(server)
