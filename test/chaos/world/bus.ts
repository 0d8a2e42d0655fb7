/**
 * How the nodes of a trial hear of each other: by notices of Postgres and links from node to node, or over a NATS server. Either way a
 * proxy stands in between, one for each node.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { findNatsProgram, type NatsServer, startNats } from '../../support/bus/nats-server.ts'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'

export type BusKind = 'notify' | 'nats'

export interface ChaosBus extends AsyncDisposable {
  /** null: nodes dial each other. */
  readonly nats: NatsServer | null
  attach(): Promise<BusLink>
}

export interface BusLink {
  /** The node's way to NATS, or the way of the other nodes to this one. */
  readonly proxy: FaultProxy
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export async function openBus(kind: BusKind): Promise<ChaosBus> {
  if (kind === 'notify') return { nats: null, attach: attachByLinks, async [Symbol.asyncDispose]() {} }
  const found = findNatsProgram()
  if ('missing' in found) throw new Error(found.missing)
  const nats = await startNats(found.program)
  return {
    nats,
    async attach() {
      const proxy = await openFaultProxy({ target: nats.port })
      return { proxy, flags: [], env: { ATELIER_BUS: nats.url.replace(`:${nats.port}`, `:${proxy.port}`) } }
    },
    [Symbol.asyncDispose]: () => nats[Symbol.asyncDispose](),
  }
}

async function attachByLinks(): Promise<BusLink> {
  const port = await findQuietPort()
  const proxy = await openFaultProxy({ target: port })
  return { proxy, flags: ['--internal-port', `${port}`, '--advertise', `http://127.0.0.1:${proxy.port}`], env: {} }
}

// Below what systems give to outgoing connections: nobody takes it while the node is down.
const FIRST_PORT = 20_000
const PORTS = 10_000

async function findQuietPort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await Promise.race([
      once(server, 'listening').then(() => true),
      once(server, 'error').then(() => false),
    ])
    server.close()
    if (isFree) return port
  }
}
