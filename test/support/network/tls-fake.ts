/** An https server on the loopback for `files.example` and every name below it, with a certificate that was made with openssl and lasts a hundred years. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'

const read = (name: string) => readFileSync(new URL(`certificates/${name}`, import.meta.url), 'utf8')

interface TlsFake extends AsyncDisposable {
  readonly port: number
  /** Connections that are open now. */
  readonly connections: () => Promise<number>
}

export async function startTlsFake(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TlsFake> {
  const options = { key: read('server.key'), cert: read('server.pem'), keepAliveTimeout: 75_000 }
  const server = createServer(options, answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      ),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** Until it is disposed of, this process trusts the certificate of these servers. */
export function trustTlsFakes(): Disposable {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, read('authority.pem')])
  return { [Symbol.dispose]: () => tls.setDefaultCACertificates(before) }
}
