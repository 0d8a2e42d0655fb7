/**
 * Live links as WebSockets to the internal listeners of other processes. The listener serves nothing else, and only callers that
 * prove that they have the service's secret key. It is still meant for a private network, because its traffic is not encrypted
 * unless a proxy in front does that.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import type { Greeting, LinkAuth } from './link-auth.ts'
import type { Channel, ChannelEvents, Peer, Transport } from './told-notice.ts'

interface SocketTransportOptions {
  readonly auth: LinkAuth
  readonly host: string
  /** null: the usual one, or any when that is taken, as it is where several processes share a machine. */
  readonly port: number | null
}

export interface SocketTransport extends Transport {
  readonly port: number
}

const PATH = '/live'
const USUAL_PORT = 8190
const PROOF_HEADER = 'x-atelier-proof'
// Twice the largest piece, and room for its head.
const MAX_FRAME_BYTES = 1024 * 1024
const MAX_PAYLOAD_BYTES = 2 * MAX_FRAME_BYTES
const MAX_SOCKETS = 4096
const HEADERS_MS = 5000
const REFUSE_MS = 5000

export async function openSocketTransport(options: SocketTransportOptions): Promise<SocketTransport> {
  const { auth } = options
  const server = createServer({ headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS }, (_request, response) => {
    response.writeHead(404, { connection: 'close' }).end()
  })
  server.maxConnections = MAX_SOCKETS
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: MAX_PAYLOAD_BYTES })
  const proofs = new WeakMap<IncomingMessage, string>()
  let open: Parameters<Transport['accept']>[0] | null = null

  sockets.on('headers', (headers, request) => headers.push(`${PROOF_HEADER}: ${proofs.get(request) ?? ''}`))
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const caller = request.url === PATH ? auth.check(request.headers.authorization) : null
    if (caller === null || open === null) return refuse(socket as Socket)
    const { from, proof } = caller
    proofs.set(request, proof)
    const accept = open
    sockets.handleUpgrade(request, socket, head, (ws) => {
      listen(ws, (channel) => accept(channel, from))
    })
  })
  await startListening(server, options)
  const { port } = server.address() as AddressInfo

  return {
    port,
    maxFrameBytes: MAX_FRAME_BYTES,
    reaches: ({ address }) => address !== null,
    accept(opened) {
      open = opened
    },
    dial: (peer, events, signal) => dialSocket(peer, { auth, events, signal }),
    async [Symbol.asyncDispose]() {
      for (const ws of sockets.clients) ws.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Rejects when nobody is there, or not the process that is meant. */
export async function dialSocket(
  peer: Peer,
  { auth, ...rest }: { readonly auth: LinkAuth } & Omit<DialOptions, 'greeting'>,
): Promise<Channel> {
  for (let keyIndex = 0; ; keyIndex++) {
    try {
      return await dialOnce(peer, { greeting: auth.greet(peer.id, keyIndex), ...rest })
    } catch (error) {
      // The other process may still have the key of before only.
      if (!(error instanceof NotWelcome) || keyIndex + 1 >= auth.keyCount) throw error
    }
  }
}

class NotWelcome extends Error {}

interface DialOptions {
  readonly greeting: Greeting
  readonly events: ChannelEvents
  readonly signal: AbortSignal
}

function dialOnce({ address }: Peer, { greeting, events, signal }: DialOptions): Promise<Channel> {
  if (address === null) return Promise.reject(new Error('the process has no address'))
  const ws = new WebSocket(`${address.replace(/^http/, 'ws').replace(/\/+$/, '')}${PATH}`, {
    headers: { authorization: greeting.text },
    perMessageDeflate: false,
    maxPayload: MAX_PAYLOAD_BYTES,
    followRedirects: false,
  })
  return new Promise<Channel>((resolve, reject) => {
    let isProven = false
    const giveUp = () => ws.terminate()
    signal.addEventListener('abort', giveUp, { once: true })
    const fail = (error: Error) => {
      signal.removeEventListener('abort', giveUp)
      ws.terminate()
      reject(error)
    }
    ws.on('upgrade', ({ headers }) => {
      const proof = headers[PROOF_HEADER]
      isProven = greeting.isAnswered(typeof proof === 'string' ? proof : undefined)
    })
    ws.on('unexpected-response', (_request, response) => {
      response.resume()
      fail(
        response.statusCode === 401
          ? new NotWelcome('it does not accept our secret key, or is another process by now')
          : new Error(`answered ${response.statusCode}`),
      )
    })
    ws.on('error', fail)
    ws.on('close', () => fail(new Error('the connection was closed')))
    ws.on('open', () => {
      if (!isProven) return fail(new Error('the process at this address does not have the secret key'))
      signal.removeEventListener('abort', giveUp)
      listen(ws, (channel) => {
        resolve(channel)
        return events
      })
    })
    if (signal.aborted) giveUp()
  })
}

function listen(ws: WebSocket, begin: (channel: Channel) => ChannelEvents): void {
  let isClosed = false
  const channel: Channel = {
    send(frame) {
      if (ws.readyState === WebSocket.OPEN) ws.send(frame)
    },
    // No farewell: a side that does not answer any more must not be waited for.
    close: () => ws.terminate(),
  }
  const events = begin(channel)
  ws.on('message', (data) => events.onFrame(data as Buffer))
  ws.on('error', () => ws.terminate())
  ws.on('close', () => {
    if (isClosed) return
    isClosed = true
    events.onClosed()
  })
}

/** A refused caller may neither read the answer nor close the connection, and must not take the place of others. */
function refuse(socket: Socket): void {
  socket.setTimeout(REFUSE_MS, () => socket.destroy())
  socket.write('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  socket.destroySoon()
}

async function startListening(server: Server, { host, port }: SocketTransportOptions): Promise<void> {
  try {
    await listenAt(server, host, port ?? USUAL_PORT)
  } catch (error) {
    if (port !== null || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    await listenAt(server, host, 0)
  }
}

function listenAt(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}
