/**
 * A port that the server can leave and take again. Ports that the system hands out by itself are handed to others in between, to
 * servers and to outgoing connections; so one below their range is tried until it is free.
 */
import { randomInt } from 'node:crypto'
import type { Server } from 'node:http'

const FIRST_PORT = 10_000
const BEYOND_LAST_PORT = 32_000

/** `port`: 0 for any. */
export async function listenOnOwnPort(server: Server, port: number): Promise<number> {
  while (true) {
    const tried = port === 0 ? randomInt(FIRST_PORT, BEYOND_LAST_PORT) : port
    const error = await listen(server, tried)
    if (error === null) return tried
    if (port !== 0 || error.code !== 'EADDRINUSE') throw error
  }
}

function listen(server: Server, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    server.once('error', resolve)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', resolve)
      resolve(null)
    })
  })
}
