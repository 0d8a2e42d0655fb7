/** The yardstick of the router: node:http in front, undici behind, nothing checked, recorded or billed. */
import { createServer } from 'node:http'
import { Pool } from 'undici'
import { listenForParent, readSettings } from '../kit/server-child.ts'

const { providerUrl } = readSettings<{ providerUrl: string }>()
const pool = new Pool(providerUrl, { connections: 256 })

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', async () => {
    const answer = await pool.request({
      path: request.url ?? '/',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.concat(chunks),
    })
    const body = Buffer.from(await answer.body.arrayBuffer())
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
})
listenForParent(server, async () => {
  await pool.close()
})
