/** The memory of unfinished bodies, and how soon it is freed when they are gone: 24 of 95 MB to a model, 40 of 31 MB to jobs. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Figure } from '../../kit/figure.ts'
import { forkServer } from '../../kit/server-child.ts'

const MB = 1_000_000
const CASES = [
  { name: '24 unfinished model inputs of 95 MB', path: '/v2/models/sandbox/echo', count: 24, bytes: 95 * MB },
  { name: '40 unfinished jobs of 31 MB', path: '/api/v2/jobs', count: 40, bytes: 31 * MB },
]
const SETTLE_MS = 5000
// The default budget, plus what is still in the sockets.
const PEAK_BAR_MB = 400
// Socket buffers that are not collected yet, and what any first load leaves.
const REST_BAR_MB = 100
const STALLED_MS = 2000

export async function bodies(): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const { name, path, count, bytes } of CASES) {
    await using atelier = await forkServer('bench/servers/atelier.ts', {})
    const before = await readMb(atelier)
    const sockets = await Promise.all(Array.from({ length: count }, () => sendMost(atelier.url, path, bytes)))
    const peak = await readMb(atelier)
    for (const socket of sockets) socket.destroy()
    await sleep(SETTLE_MS)
    const rest = await readMb(atelier)
    const detail = { before, peak, rest }
    const common = { unit: 'MB', direction: 'at_most', detail } as const
    figures.push({ name: `memory for ${name}`, measured: peak - before, bar: PEAK_BAR_MB, ...common })
    figures.push({
      name: `memory ${SETTLE_MS / 1000} s after them`,
      measured: rest - before,
      bar: REST_BAR_MB,
      ...common,
    })
  }
  return figures
}

async function readMb(atelier: { usage(): Promise<{ readonly rssBytes: number }> }): Promise<number> {
  return Math.round((await atelier.usage()).rssBytes / MB)
}

/** Sends all but the end of a body, or as much as the server accepts. */
async function sendMost(url: string, path: string, bytes: number): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => {})
  socket.resume()
  socket.write(`POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: ${bytes}\r\n\r\n{"text":"`)
  const piece = Buffer.alloc(MB, 'x')
  for (let sent = MB; sent < bytes && !socket.destroyed; sent += MB) {
    if (!socket.write(piece)) await drained(socket)
  }
  return socket
}

/** Or closed, or refused and left alone: a server that has answered reads a little more and then no further. */
async function drained(socket: Socket): Promise<void> {
  const over = new AbortController()
  const waiting = ['drain', 'close'].map((event) => once(socket, event, { signal: over.signal }).catch(() => {}))
  await Promise.race([...waiting, sleep(STALLED_MS, null, { signal: over.signal })])
  over.abort()
}
