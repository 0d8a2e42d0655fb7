/**
 * Clients that end their own side of the connection after the request and wait for the answer. Node would end the connection
 * at once, and every answer that takes longer than a moment would be lost. So they get their answers. But a client that is gone
 * altogether looks the same until something is written to it, so a connection on which nothing is sent for a while is cut.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'

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
