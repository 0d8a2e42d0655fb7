/**
 * Storage that costs as little as it can: it keeps the newest objects in memory and checks nothing. What is measured against it is
 * what our side of the wire costs.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readSettings, reportToParent } from '../kit/server-child.ts'

readSettings()

type Chunks = readonly Buffer[]
// One large object is enough for a round; the one before it goes.
const MAX_OBJECTS = 3
const objects = new Map<string, Chunks>()
const uploads = new Map<string, Map<number, Chunks>>()

function keep(key: string, chunks: Chunks): void {
  objects.set(key, chunks)
  const large = [...objects].filter(([name]) => name.includes('/up/'))
  if (large.length > MAX_OBJECTS) objects.delete(large[0][0])
}

function collect(request: IncomingMessage): Promise<Chunks> {
  const chunks: Buffer[] = []
  return new Promise((resolve) => {
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => resolve(chunks))
  })
}

const sizeOf = (chunks: Chunks) => chunks.reduce((sum, chunk) => sum + chunk.length, 0)

function sendChunks(response: ServerResponse, chunks: Chunks, at = 0): void {
  for (let index = at; index < chunks.length; index++) {
    if (response.write(chunks[index])) continue
    response.once('drain', () => sendChunks(response, chunks, index + 1))
    return
  }
  response.end()
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname: key, searchParams: query } = new URL(request.url ?? '', 'http://s3')
  const sent = await collect(request)
  const uploadId = query.get('uploadId') ?? ''
  if (request.method === 'PUT') {
    if (uploadId === '') keep(key, sent)
    else uploads.get(uploadId)?.set(Number(query.get('partNumber')), sent)
    return void response.setHeader('etag', '"x"').end()
  }
  if (request.method === 'POST' && uploadId === '') {
    const id = randomUUID()
    uploads.set(id, new Map())
    return void response.end(`<R><UploadId>${id}</UploadId></R>`)
  }
  if (request.method === 'POST') {
    const parts = [...(uploads.get(uploadId) ?? [])].sort(([a], [b]) => a - b)
    uploads.delete(uploadId)
    keep(
      key,
      parts.flatMap(([, chunks]) => chunks),
    )
    return void response.end('<R></R>')
  }
  const object = objects.get(key)
  if (request.method === 'DELETE') return void response.writeHead(204).end()
  if (object === undefined) return void response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>')
  response.setHeader('content-length', sizeOf(object))
  if (request.method === 'HEAD') return void response.end()
  sendChunks(response, object)
}

const server = createServer((request, response) => void serve(request, response))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
reportToParent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
  async close() {
    server.closeAllConnections()
    server.close()
  },
})
