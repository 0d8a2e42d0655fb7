import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HttpFake extends AsyncDisposable {
  readonly port: number
  readonly url: string
}

/** A plain server on a free port of the loopback; ends with everything that hangs on it. */
export async function startHttpFake(
  answer: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
): Promise<HttpFake> {
  // An idle connection is closed by the client, which is then not about to send anything on it.
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    Promise.resolve(answer(request, response)).catch((error) => {
      response.statusCode = 599
      response.end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
