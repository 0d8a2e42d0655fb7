/** One HTTP request through node's own client, which lets a test set Host and Origin as it likes. */
import { type Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface CallOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Left out: a connection of its own. */
  readonly agent?: Agent
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** Parsed, or undefined when there is no body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly json: any
}

export function call(
  url: string,
  path: string,
  { method = 'GET', headers = {}, body, agent }: CallOptions = {},
): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const outgoing = request(
    { host: hostname, port, path, method, agent: agent ?? false, headers: { ...headers } },
    (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        const text = bytes.toString()
        const isJson = response.headers['content-type']?.startsWith('application/json') === true && text !== ''
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes,
          text,
          json: isJson ? JSON.parse(text) : undefined,
        })
      })
    },
  )
  outgoing.on('error', reject)
  // Of a DELETE the client would send the body without saying how long it is.
  if (
    method === 'DELETE' &&
    body !== undefined &&
    !outgoing.hasHeader('content-length') &&
    !outgoing.hasHeader('transfer-encoding')
  )
    outgoing.setHeader('content-length', Buffer.byteLength(body))
  outgoing.end(body)
  return promise
}
