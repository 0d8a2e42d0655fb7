/**
 * A receiver of webhooks that behaves as its path says and checks every signature with the official library. A misbehaving path answers
 * a message properly once it has come often enough.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

export type Behaviour = 'ok' | 'slow' | 'failing' | 'gone' | 'redirect' | 'hang' | 'drop'

export interface Received {
  readonly path: string
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
  /** As it came. */
  readonly body: string
  /** null: it was signed as it should be. */
  readonly fault: string | null
  /** It was answered with 2xx. */
  readonly isTaken: boolean
}

export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string
  readonly received: readonly Received[]
  /** Signs what comes to this path. */
  expect(path: string, ...secrets: readonly string[]): void
}

const BAD_TRIES = 1
const SLOW_MS = 300

export async function startWebhookReceiver(port = 0): Promise<WebhookReceiver> {
  const received: Received[] = []
  const secrets = new Map<string, readonly string[]>()
  const tries = new Map<string, number>()
  const server = createServer((request, response) => void take(request, response))

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += chunk
    const path = request.url ?? ''
    const id = String(request.headers['webhook-id'])
    const count = (tries.get(`${path} ${id}`) ?? 0) + 1
    tries.set(`${path} ${id}`, count)
    const behaviour = (path.split('/')[1] ?? 'ok') as Behaviour
    const isBad = behaviour === 'gone' || (behaviour !== 'ok' && behaviour !== 'slow' && count <= BAD_TRIES)
    const { type, data } = JSON.parse(body)
    const fault = faultOf(secrets.get(path) ?? [], body, request.headers as Record<string, string>)
    received.push({
      path,
      id,
      type,
      data,
      headers: { ...request.headers } as Record<string, string>,
      body,
      fault,
      isTaken: !isBad,
    })
    if (behaviour === 'slow') setTimeout(() => response.writeHead(200).end('slowly'), SLOW_MS)
    else if (isBad) misbehave(behaviour, request, response)
    else response.writeHead(200).end('taken')
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    expect: (path, ...texts) => void secrets.set(path, texts),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function misbehave(behaviour: Behaviour, request: IncomingMessage, response: ServerResponse): void {
  if (behaviour === 'failing') response.writeHead(500).end('down for a moment')
  else if (behaviour === 'gone') response.writeHead(410).end()
  else if (behaviour === 'redirect') response.writeHead(307, { location: '/ok/elsewhere' }).end()
  else if (behaviour === 'drop') request.socket.destroy()
  // A path that hangs gets no answer at all.
}

/** Each of the secrets must accept it: while one replaces another, receivers have the one or the other. */
function faultOf(texts: readonly string[], body: string, headers: Record<string, string>): string | null {
  if (texts.length === 0) return 'nobody knows the secret of this path'
  for (const text of texts) {
    try {
      new Webhook(text).verify(body, headers)
    } catch (error) {
      return (error as Error).message
    }
  }
  return null
}
