/**
 * Stands between the official command line and the service, and keeps every exchange. It is also the place where `https` on port 443 ends:
 * a proxy for CONNECT leads every host below a domain to a listener with a certificate that the test made.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import path from 'node:path'

export interface Exchange {
  readonly method: string
  /** Of a request over TLS; null: over plain http. */
  readonly host: string | null
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly status: number
  readonly type: string
  readonly answer: Buffer
}

export interface Recorder extends AsyncDisposable {
  readonly origin: string
  /** Of the proxy for CONNECT. */
  readonly proxy: string
  readonly ca: string
  /** What came since the last look. */
  take(): Exchange[]
}

const KEPT = ['content-type', 'idempotency-key', 'x-goog-if-generation-match', 'x-api-key', 'authorization']

export async function startRecorder(service: string, domain: string, folder: string): Promise<Recorder> {
  let kept: Exchange[] = []
  const handle = (isTls: boolean) => (incoming: IncomingMessage, response: ServerResponse) => {
    void forward(service, incoming, response, isTls).then(
      (exchange) => kept.push(exchange),
      () => response.destroy(),
    )
  }
  const plain = createServer(handle(false))
  const ca = makeCertificates(folder, domain)
  const tls = createTlsServer(
    { key: readFileSync(path.join(folder, 'server.key')), cert: readFileSync(path.join(folder, 'server.pem')) },
    handle(true),
  )
  await Promise.all([listen(plain), listen(tls)])
  const connecting = createServer()
  const tunnels = new Set<Socket>()
  connecting.on('connect', ({ url = '' }: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!url.endsWith(`.${domain}:443`)) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    const inner = connect(portOf(tls), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      inner.write(head)
      inner.pipe(socket).pipe(inner)
    })
    for (const one of [socket, inner]) {
      tunnels.add(one)
      one.on('error', () => one.destroy())
      one.on('close', () => tunnels.delete(one))
    }
  })
  await listen(connecting)
  return {
    origin: `http://127.0.0.1:${portOf(plain)}`,
    proxy: `http://127.0.0.1:${portOf(connecting)}`,
    ca,
    take() {
      const taken = kept
      kept = []
      return taken
    },
    async [Symbol.asyncDispose]() {
      for (const socket of tunnels) socket.destroy()
      for (const server of [plain, tls, connecting]) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

async function forward(
  service: string,
  incoming: IncomingMessage,
  response: ServerResponse,
  isTls: boolean,
): Promise<Exchange> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const { method = 'GET', url = '/', headers } = incoming
  const told = isTls ? { ...headers, 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' } : headers
  const { promise, resolve, reject } = Promise.withResolvers<Exchange>()
  const outgoing = request(new URL(url, service), { method, headers: told, agent: false }, (answer) => {
    const { 'transfer-encoding': _, ...others } = answer.headers
    response.writeHead(answer.statusCode ?? 502, others)
    const parts: Buffer[] = []
    answer.on('data', (part: Buffer) => {
      parts.push(part)
      response.write(part)
    })
    answer.on('error', reject)
    answer.on('end', () => {
      response.end()
      resolve({
        ...{ method, path: url, body, status: answer.statusCode ?? 502 },
        host: isTls ? (headers.host ?? '') : null,
        headers: Object.fromEntries(KEPT.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : []))),
        type: answer.headers['content-type']?.split(';')[0] ?? '',
        answer: Buffer.concat(parts),
      })
    })
  })
  outgoing.on('error', reject)
  // Who has stopped to listen is not waited for.
  response.on('close', () => outgoing.destroy())
  outgoing.end(body)
  return promise
}

/** An authority of its own and a certificate for every host below `run.<domain>`; resolves with the path of the authority's. */
function makeCertificates(folder: string, domain: string): string {
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' })
  const fresh = ['-newkey', 'rsa:2048', '-nodes', '-days', '2']
  openssl('req', '-x509', ...fresh, '-subj', '/CN=test authority', '-keyout', 'ca.key', '-out', 'ca.pem')
  openssl(
    ...['req', '-x509', ...fresh, '-subj', `/CN=*.run.${domain}`, '-addext', `subjectAltName=DNS:*.run.${domain}`],
    ...['-addext', 'basicConstraints=critical,CA:FALSE', '-CA', 'ca.pem', '-CAkey', 'ca.key'],
    ...['-keyout', 'server.key', '-out', 'server.pem'],
  )
  return path.join(folder, 'ca.pem')
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
