/** The yardstick of polling: node:http and nothing else, sending the same bytes. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readSettings, reportToParent } from '../kit/server-child.ts'

const { body } = readSettings<{ body: string }>()
const bytes = Buffer.from(body)
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length })
  response.end(bytes)
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  reportToParent(`http://127.0.0.1:${port}`, {
    async close() {
      server.closeAllConnections()
      server.close()
    },
  })
})
