/**
 * Ends a listener in order. No new connections; connections without a request under way go at once; requests under way
 * finish; after a bounded wait everything left is cut.
 */
import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

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
