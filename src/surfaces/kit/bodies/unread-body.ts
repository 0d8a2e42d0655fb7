/**
 * An answer may be ready before its request is wholly read: a refused upload, a body over the limit. Closing at once resets
 * the connection, and many clients then lose the answer; reading on for ever lets a sender waste our time. So we read and
 * drop a little more, and then close.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { claimOf } from './body-memory.ts'

const LINGER_BYTES = 64 * 1024 * 1024
const LINGER_MS = 3_000

// Requests whose connection node would have closed behind the answer, as their sender asked.
const toBeClosed = new WeakSet<IncomingMessage>()

/** To be called before the answer is written: keeps node from closing right behind it. */
export function keepOpenFor(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || !hasBody(request)) return
  if (!response.shouldKeepAlive) toBeClosed.add(request)
  response.shouldKeepAlive = true
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** To be called once the answer has been written. */
export function dropRestOf(request: IncomingMessage): void {
  const { socket } = request
  if (request.destroyed || socket.destroyed) return
  const finish = () => {
    if (toBeClosed.has(request)) socket.destroySoon()
  }
  if (request.complete) {
    finish()
    return
  }
  let left = LINGER_BYTES
  const { onTransferred } = claimOf(request)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  const stop = () => clearTimeout(timer)
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    onTransferred(chunk.length)
    if (left < 0) socket.destroy()
  })
  request.once('end', () => {
    stop()
    // The connection may carry many more requests.
    socket.off('close', stop)
    finish()
  })
  socket.once('close', stop)
  request.resume()
}
