/** Serves a folder on loopback, with ranges, as any web server does. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'

export interface FileServer extends AsyncDisposable {
  readonly origin: string
  readonly asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  /** Cuts the connection of each answer after so many bytes; null: it gives all. */
  cutAfter: number | null
  /** What would be cut stays open instead, and nothing more comes. */
  holds: boolean
}

export async function serveFolder(folder: string): Promise<FileServer> {
  const asked: { path: string; headers: IncomingHttpHeaders }[] = []
  const served = { cutAfter: null as number | null, holds: false }
  const server = createServer(async (request, response) => {
    const name = new URL(request.url ?? '/', 'http://x').pathname
    asked.push({ path: name, headers: request.headers })
    const file = path.join(folder, path.normalize(decodeURIComponent(name)), name.endsWith('/') ? 'index.html' : '')
    const found = await stat(file).catch(() => null)
    if (found === null || !found.isFile()) return void response.writeHead(404).end()
    const tag = `"${found.size}-${found.mtimeMs}"`
    const [, from] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? []
    const start = from !== undefined && request.headers['if-range'] === tag ? Number(from) : 0
    const type = name.endsWith('/') ? { 'content-type': 'text/html' } : {}
    const headers = { etag: tag, 'content-length': found.size - start, ...type }
    if (start > 0)
      response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${found.size - 1}/${found.size}` })
    else response.writeHead(200, headers)
    const { cutAfter, holds } = served
    const end = cutAfter === null ? Number.POSITIVE_INFINITY : start + cutAfter - 1
    const stream = createReadStream(file, { start, end })
    stream.pipe(response, { end: false })
    // What was written still arrives before the connection ends.
    stream.on('end', () => {
      if (end >= found.size - 1) response.end()
      else if (!holds) response.socket?.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get cutAfter() {
      return served.cutAfter
    },
    set cutAfter(bytes) {
      served.cutAfter = bytes
    },
    get holds() {
      return served.holds
    },
    set holds(isSo) {
      served.holds = isSo
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
