/**
 * Connections below the framework: answers on a response object or on nothing but a socket, WebSockets, peers that ended their side,
 * calls that take long, and the end of the listener.
 */
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Gate } from '../guards/gate.ts'
import { pathOf, requestIdOf } from '../request.ts'
import type { AnswerError, ErrorAnswer, Upgrade, UpgradeRoute } from '../surface.ts'

/** `headers` are the common ones, as name, value, name, value. */
export function writeAnswer(response: ServerResponse, headers: readonly string[], answer: ErrorAnswer): void {
  response.writeHead(answer.status, withOwn(headers, answer))
  response.end(answer.body)
}

/** The whole answer as text, for a connection that ends with it. */
function encodeAnswer(headers: readonly string[], answer: ErrorAnswer): string {
  const all = [...withOwn(headers, answer), 'Connection', 'close']
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\n`
  for (let at = 0; at < all.length; at += 2) text += `${all[at]}: ${all[at + 1]}\r\n`
  return `${text}\r\n${answer.body}`
}

function withOwn(headers: readonly string[], { headers: own, body }: ErrorAnswer): string[] {
  return [...headers, ...Object.entries(own).flat(), 'Content-Length', String(Buffer.byteLength(body))]
}

interface BrokenRequestOptions {
  readonly gate: Pick<Gate, 'answerHeaders'>
  readonly answerError: AnswerError
}

/**
 * Bytes that are not HTTP, headers without end, requests that never complete: answered once in the envelope where nothing has
 * been written yet, and the connection closed in every case. Nothing that arrives on a socket may end the process.
 */
export function answerBrokenRequests(server: Server, { gate, answerError }: BrokenRequestOptions): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const code = error.code ?? ''
    const isAboutHttp = code.startsWith('HPE_') || code.startsWith('ERR_HTTP_')
    // Anything already written may be half an answer, and a second one would corrupt it.
    if (!isAboutHttp || !socket.writable || socket.bytesWritten > 0) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    socket.write(encodeAnswer(gate.answerHeaders(undefined, requestId), answerError(error, requestId)))
    socket.destroySoon()
  })
}

// Requests that ask to leave HTTP for a WebSocket. Only those that a surface takes are let out of the HTTP server; every other
// one is answered like an ordinary request. The guards run first, and a refusal is a plain answer in the surface's
// envelope, before the handshake. A peer that is silent while its handshake is decided is cut.

const HANDSHAKE_MS = 15_000

/** For the HTTP server's own decision. */
export function createShouldUpgrade(routes: readonly UpgradeRoute[]): (request: IncomingMessage) => boolean {
  return (request) => isWebSocket(request) && routes.some((route) => route.takes(pathOf(request.url ?? '')))
}

export function routeUpgrades(server: Server, routes: readonly UpgradeRoute[], gate: Gate): void {
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket
    const route = routes.find((one) => one.takes(pathOf(request.url ?? '')))
    // Nothing that happens to the connection from here on may end the process.
    socket.on('error', () => socket.destroy())
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy())
    if (route === undefined) socket.destroy()
    else void admit(route, { request, socket, head }, gate)
  })
}

async function admit(route: UpgradeRoute, upgrade: Upgrade, gate: Gate): Promise<void> {
  try {
    gate.admit(upgrade.request)
    await route.open(upgrade)
  } catch (error) {
    refuseUpgrade(upgrade, gate, { error, answerError: route.answerError })
  }
}

/** Answers in plain HTTP and ends the connection. */
export function refuseUpgrade(
  { request, socket }: Pick<Upgrade, 'request' | 'socket'>,
  gate: Pick<Gate, 'answerHeaders'>,
  { error, answerError }: { readonly error: unknown; readonly answerError: AnswerError },
): void {
  if (!socket.writable || socket.destroyed) {
    socket.destroy()
    return
  }
  const requestId = requestIdOf(request)
  const headers = gate.answerHeaders(request.headers.origin, requestId)
  socket.write(encodeAnswer(headers, answerError(error, requestId)))
  socket.destroySoon()
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

// Clients that end their own side of the connection after the request and wait for the answer. Node would end the connection
// at once, and every answer that takes longer than a moment would be lost. So they get their answers. But a client that is gone
// altogether looks the same until something is written to it, so a connection on which nothing is sent for a while is cut.

const GRACE_MS = 10_000

const KEEPS_OPEN = Symbol('kept open until it is answered')
type Marked = Socket & { [KEEPS_OPEN]?: boolean }

export function answerHalfClosed(server: Server): void {
  // A property of every server since the first versions, though not among the documented ones.
  const switchable = server as Server & { httpAllowHalfOpen: boolean }
  switchable.httpAllowHalfOpen = true
  server.on('connection', (socket: Socket) => socket.on('end', onPeerEnd))
}

/** For requests whose answer may take long and has an end of its own: they are not cut for being silent. */
export function keepUntilAnswered(socket: Marked): void {
  socket[KEEPS_OPEN] = true
}

function onPeerEnd(this: Marked): void {
  if (this[KEEPS_OPEN] !== true) cutWhenSilent(this)
}

function cutWhenSilent(socket: Socket): void {
  let written = socket.bytesWritten
  const timer = setInterval(() => {
    if (socket.bytesWritten === written) socket.destroy()
    written = socket.bytesWritten
  }, GRACE_MS)
  socket.once('close', () => clearInterval(timer))
}

// Proxies and kernels may drop a silent connection; we do not while its call may still end well. Most calls end long before the
// connection counts as idle, so its timer is left alone until it fires.

/** To be called before the answer begins; `holdMs`: how long the connection may be silent until then. */
export function holdOpen(response: ServerResponse, holdMs: number): void {
  const { socket } = response
  const idleMs = socket?.timeout ?? 0
  if (idleMs === 0 || idleMs >= holdMs) socket?.setTimeout(holdMs)
  else response.once('timeout', () => socket?.setTimeout(holdMs - idleMs))
}

/**
 * Ends a listener in order. No new connections; connections without a request under way go at once; requests under way
 * finish; after a bounded wait everything left is cut.
 */
interface Drain {
  /** `onStopped` runs when no new connection can come any more, before any is closed. */
  run(options: { readonly withinMs: number; readonly onStopped: () => void }): Promise<void>
}

const SWEEP_MS = 50

export function prepareDrain(server: Server): Drain {
  // Node counts a connection that has not sent its first request as busy, and would keep it until everything is cut.
  const unused = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', forget)
  })
  server.on('request', (request) => void unused.delete(request.socket))
  // An upgraded connection is ended by the surface that took it.
  server.on('upgrade', (request) => void unused.delete(request.socket))
  function forget(this: Socket): void {
    unused.delete(this)
  }

  return {
    async run({ withinMs, onStopped }) {
      // The listener only: node's own close would cut event streams, idle in its eyes, before their closing comment is sent.
      const isClosed = new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()))
      onStopped()
      for (const socket of unused) socket.destroy()
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
      const cut = setTimeout(() => server.closeAllConnections(), withinMs)
      await isClosed
      clearInterval(sweep)
      clearTimeout(cut)
      // Already closed; this ends node's own bookkeeping timer.
      server.close()
    },
  }
}

/** What a connection carries once it belongs to an event stream. */
export const STREAM = Symbol('event stream')

/** Whether this connection belongs to a stream; further requests on it are not answered. */
export function isStreamSocket(socket: Socket & { [STREAM]?: unknown }): boolean {
  return socket[STREAM] !== undefined
}
