/** A TCP way to one port that can be cut, or go silent in both directions while its connections stay open. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface FaultyWire extends AsyncDisposable {
  readonly port: number
  /** Connections that were opened since the start. */
  readonly opened: number
  /** Breaks what is open. */
  cut(): void
  /** New connections are refused at once, until further notice. */
  refuse(isRefusing: boolean): void
  /** Nothing arrives any more, and nobody is told. What is opened later works. */
  silence(): void
  /** Whoever is behind the wire reads nothing until `read`. */
  stopReading(): void
  read(): void
}

export async function openFaultyWire(toPort: () => number): Promise<FaultyWire> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isRefusing = false
  let opened = 0
  let isReading = true
  const server = createServer((near) => {
    opened++
    if (isRefusing) {
      near.destroy()
      return
    }
    const far = connect(toPort(), '127.0.0.1')
    const pair = [near, far] as const
    pairs.add(pair)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ]) {
      one.on('error', () => other.destroy())
      one.on('close', () => {
        other.destroy()
        pairs.delete(pair)
      })
      one.pipe(other)
    }
    if (!isReading) far.unpipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const cut = () => {
    for (const [near, far] of pairs) {
      near.destroy()
      far.destroy()
    }
  }
  return {
    port,
    get opened() {
      return opened
    },
    cut,
    refuse(refusing) {
      isRefusing = refusing
    },
    silence() {
      for (const [near, far] of pairs) {
        near.unpipe(far)
        far.unpipe(near)
        near.resume()
        far.resume()
      }
    },
    stopReading() {
      isReading = false
      for (const [near, far] of pairs) {
        far.unpipe(near)
        far.pause()
      }
    },
    read() {
      isReading = true
      for (const [near, far] of pairs) far.pipe(near)
    },
    async [Symbol.asyncDispose]() {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
