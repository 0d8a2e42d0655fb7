/** This process among those of its service: an id of its own, its beats, and whether it does the chores of all. */
import { hostname } from 'node:os'
import type { Clock } from '../../lib/clock.ts'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { createLoneHeartbeat, type Heartbeat, openHeartbeat } from '../domain/service-nodes/heartbeat.ts'
import { createLeadership, type Leadership, UNCONTESTED } from '../domain/service-nodes/leadership.ts'
import type { Store } from '../domain/store.ts'

export interface ServiceNodeParts extends AsyncDisposable {
  readonly heartbeat: Heartbeat
  /** The chores of the whole service are done by the process that holds this. */
  readonly leadership: Leadership
}

interface ServiceNodeDeps {
  readonly store: Pick<Store, 'nodes' | 'isExclusive' | 'schemaNumber'>
  readonly version: string
  /** How many workers this process has, by pool. */
  readonly workers: () => Readonly<Record<string, number>>
  readonly clock: Clock
  readonly log: Log
}

const HOUSEKEEPING = 'housekeeping'
// Three beats: a process that is gone is replaced soon, and one slow beat costs nothing.
const LEAD_MS = 15_000

export async function openServiceNode(deps: ServiceNodeDeps): Promise<ServiceNodeParts> {
  const { store, version, workers, clock, log } = deps
  const nodeId = newUuidV4()
  const about = () => ({ version, host: hostname(), workers: workers(), schema: store.schemaNumber })
  if (store.isExclusive) {
    const heartbeat = createLoneHeartbeat({ nodeId, about })
    return { heartbeat, leadership: UNCONTESTED, [Symbol.asyncDispose]: () => heartbeat[Symbol.asyncDispose]() }
  }
  const heartbeat = await openHeartbeat({ store: store.nodes, nodeId, about, clock, log })
  const leadership = createLeadership({ store: store.nodes, name: HOUSEKEEPING, nodeId, clock, forMs: LEAD_MS })
  heartbeat.onBeat(() => leadership.renew())
  return {
    heartbeat,
    leadership,
    async [Symbol.asyncDispose]() {
      // What it holds is given up with its last beat, in one write.
      leadership.end()
      await heartbeat[Symbol.asyncDispose]()
    },
  }
}
