/**
 * A port that the server can leave and take again. Ports that the system hands out by itself go to others in between, to servers
 * and to outgoing connections; so these are below their range, in a part that depends on the process, and each in its turn: an
 * engine that still asks for a server which is gone does not find the one of another test.
 */
import type { Server } from 'node:http'

const FIRST_PORT = 10_000
const PORTS_OF_PROCESS = 200
const PROCESSES = 110

const firstOwn = FIRST_PORT + (process.pid % PROCESSES) * PORTS_OF_PROCESS
let turns = 0

/** `port`: 0 for any. */
export async function listenOnOwnPort(server: Server, port: number): Promise<number> {
  while (true) {
    const tried = port === 0 ? firstOwn + (turns++ % PORTS_OF_PROCESS) : port
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
