/** The yardstick of polling: node:http and nothing else, sending the same bytes. */
import { createServer } from 'node:http'
import { listenForParent, readSettings } from '../kit/server-child.ts'

const { body } = readSettings<{ body: string }>()
const bytes = Buffer.from(body)
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
})
listenForParent(server)
