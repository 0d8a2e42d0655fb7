/** Live links between the buses of one test over real sockets, with an internal listener each. */
import { silentLog } from '../../../lib/log.ts'
import { createLinkAuth } from '../../../src/adapters/bus/live/link-auth.ts'
import type { LinkTiming } from '../../../src/adapters/bus/live/link-watcher.ts'
import { LiveLinks } from '../../../src/adapters/bus/live/live-links.ts'
import type { OutboxBounds } from '../../../src/adapters/bus/live/outbox.ts'
import { openSocketTransport, type SocketTransport } from '../../../src/adapters/bus/live/socket-transport.ts'
import type { Peer } from '../../../src/adapters/bus/live/told-notice.ts'

export const LINK_KEY = new Uint8Array(32).fill(7)

export interface LinkNode extends AsyncDisposable {
  readonly id: string
  readonly links: LiveLinks
  readonly transport: SocketTransport
}

interface LinkOptions {
  readonly timing?: Partial<LinkTiming>
  readonly bounds?: Partial<OutboxBounds>
  readonly keys?: readonly Uint8Array[]
  /** In place of the own address, for a way that can be broken. */
  readonly through?: (port: number) => number
}

/** Processes that know each other. A job that is watched at one of them is looked for at all others. */
export class LinkNetwork {
  readonly peers = new Map<string, Peer>()
  /** By job; a job that is not here is held by whoever else there is, the first one. */
  readonly holders = new Map<string, string>()

  async join(id: string, options: LinkOptions = {}): Promise<LinkNode> {
    const auth = createLinkAuth({ keys: options.keys ?? [LINK_KEY], self: id, now: () => new Date() })
    const transport = await openSocketTransport({ auth, host: '127.0.0.1', port: 0 })
    const port = options.through?.(transport.port) ?? transport.port
    this.peers.set(id, { id, address: `http://127.0.0.1:${port}` })
    const others = () => [...this.peers.values()].filter((peer) => peer.id !== id)
    const links = new LiveLinks({
      transport,
      directory: {
        listPeers: async () => others(),
        findHolders: async (jobIds) =>
          new Map(
            jobIds.flatMap((jobId) => {
              const holder = this.holders.get(jobId) ?? others()[0]?.id
              return holder === undefined || holder === id ? [] : [[jobId, [holder]] as const]
            }),
          ),
      },
      log: silentLog,
      ...(options.timing && { timing: options.timing }),
      ...(options.bounds && { bounds: options.bounds }),
    })
    const leave = () => this.peers.delete(id)
    return {
      id,
      links,
      transport,
      async [Symbol.asyncDispose]() {
        leave()
        await links[Symbol.asyncDispose]()
        await transport[Symbol.asyncDispose]()
      },
    }
  }
}
