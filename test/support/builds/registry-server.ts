/** A registry of packs on loopback, in the words of the public one. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Published {
  readonly id: string
  readonly version: string
  readonly zip: Buffer
  readonly status?: 'Active' | 'Pending' | 'Banned' | 'Deleted' | 'Flagged'
  readonly classes?: readonly string[]
}

interface RegistryServer extends AsyncDisposable {
  readonly origin: string
  /** The newest last. */
  readonly published: Published[]
  /** Paths with their queries. */
  readonly asked: string[]
}

export async function serveRegistry(published: Published[] = []): Promise<RegistryServer> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', origin)
    asked.push(url.pathname + url.search)
    const [what, name = '', then] = url.pathname.slice(1).split('/').map(decodeURIComponent)
    const tell = (status: number, body: object | Buffer) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
      response.writeHead(status, { 'content-length': bytes.length }).end(bytes)
    }
    const unknown = () => tell(404, { error: 'Not Found', message: 'there is none' })
    if (what === 'zips') {
      const found = published.find(({ id, version }) => `${id}-${version}.zip` === name)
      return found === undefined ? unknown() : tell(200, found.zip)
    }
    if (what === 'comfy-nodes' && then === 'node') {
      const found = published.findLast(({ classes = [] }) => classes.includes(name))
      return found === undefined ? unknown() : tell(200, { id: found.id, name: found.id })
    }
    const wanted = url.searchParams.get('version')
    const found = published.findLast(({ id, version }) => id === name && (wanted === null || version === wanted))
    if (what !== 'nodes' || then !== 'install' || found === undefined) return unknown()
    const { id, version, status = 'Active' } = found
    const downloadUrl = `${origin}/zips/${id}-${version}.zip`
    tell(200, {
      id: `${id}-v`,
      node_id: id,
      version,
      downloadUrl,
      status: `NodeVersionStatus${status}`,
      dependencies: [],
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    ...{ origin, published, asked },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
