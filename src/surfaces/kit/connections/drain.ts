/**
 * Ends a listener in order. No new connections; connections without a request under way go at once; requests under way
 * finish; after a bounded wait everything left is cut.
 */
import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

export interface Drain {
  /** `onStopped` runs when no new connection can come any more, before any is closed. */
  run(options: { readonly withinMs: number; readonly onStopped: () => void }): Promise<void>
}

const SWEEP_MS = 50

export function prepareDrain(server: Server): Drain {
  // To node a connection that has not sent its first request is busy; nobody would close it before the cut.
  const unused = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', forget)
  })
  server.on('request', (request) => void unused.delete(request.socket))
  // Whoever took the connection out of HTTP ends it in its own way.
  server.on('upgrade', (request) => void unused.delete(request.socket))
  function forget(this: Socket): void {
    unused.delete(this)
  }

  return {
    async run({ withinMs, onStopped }) {
      // The listener only: node's own close would cut event streams, idle in its eyes, before they could say goodbye.
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
