/** A provider that answers after a chosen time: the direct call that the router is measured against. */
import { createServer } from 'node:http'
import { listenForParent, readSettings } from '../kit/server-child.ts'

const { latencyMs = 0 } = readSettings<{ latencyMs?: number }>()
const ANSWER = Buffer.from(JSON.stringify({ id: 'generation', images: [{ seed: 42, width: 1024, height: 1024 }] }))

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const answer = () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
      response.end(ANSWER)
    }
    if (latencyMs === 0) answer()
    else setTimeout(answer, latencyMs)
  })
})
server.keepAliveTimeout = 60_000
listenForParent(server)
