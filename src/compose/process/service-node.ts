/** This process among those of its service: an id of its own, its beats, and which work of all it does. */
import { hostname } from 'node:os'
import { type Clock, systemClock } from '../../../lib/clock.ts'
import { createFollowedClock } from '../../../lib/followed-clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import type { Role } from '../../config/blocks/role-config.ts'
import { createLoneHeartbeat, type Heartbeat, openHeartbeat } from '../../domain/service-nodes/heartbeat.ts'
import { createLeadership, type Leadership, UNCONTESTED } from '../../domain/service-nodes/leadership.ts'
import type { OwnNode } from '../../domain/service-nodes/node-report.ts'
import type { NodeAbout } from '../../domain/service-nodes/node-store.ts'
import { createSharedCounts, type SharedCounts } from '../../domain/service-nodes/shared-counts.ts'
import type { Store } from '../../domain/store.ts'

export interface ServiceNodeParts extends AsyncDisposable {
  readonly heartbeat: Heartbeat
  /** For limits on what is open that hold over all processes. */
  readonly counts: SharedCounts
  /** The chores of the whole service are done by the process that holds this. */
  readonly leadership: Leadership
  /** This process as it reports itself. */
  readonly own: OwnNode
  /** Says soon that its listener is there. */
  listensAt(url: string): void
  /** Says at once that it is about to end. */
  drain(): void
  /** For further work of the whole service that only some of its processes can do: one of those that ask for it holds it. */
  contend(name: string): Leadership
}

interface ServiceNodeDeps {
  readonly store: Pick<Store, 'nodes' | 'isExclusive' | 'schemaNumber'>
  readonly version: string
  /** Whether workers of other machines may speak through this process; left out: they may not. */
  readonly takesWorkers?: boolean
  readonly role: Role
  /** How many workers this process has, by pool. */
  readonly workers: () => Readonly<Record<string, number>>
  /** Where other processes hear live what runs here; null: nowhere, or not yet. */
  readonly address: () => string | null
  readonly clock: Clock
  /** Sets the clock by the time that each beat brings back; left out: it is set otherwise. */
  readonly sampleTime?: (read: () => Promise<Date | null>) => Promise<void>
  readonly log: Log
}

const HOUSEKEEPING = 'housekeeping'
// Three beats: a process that is gone is replaced soon, and one slow beat costs nothing.
const LEAD_MS = 15_000

export async function openServiceNode(deps: ServiceNodeDeps): Promise<ServiceNodeParts> {
  const { store, version, role, workers, clock, sampleTime, log } = deps
  const nodeId = newUuidV4()
  let [url, isDraining]: [string | null, boolean] = [null, false]
  let counts: SharedCounts | null = null
  const about = (): NodeAbout => {
    const address = deps.address()
    return {
      ...{ version, role, host: hostname(), workers: workers(), schema: store.schemaNumber },
      ...(url !== null && { url }),
      ...(address !== null && { address }),
      ...(isDraining && { isDraining }),
      ...(counts !== null && { counts: counts.told() }),
    }
  }
  const own = { id: nodeId, startedAt: clock.now(), isAlone: store.isExclusive, about }
  const listensAt = (address: string) => {
    url = address
  }
  if (store.isExclusive) {
    const heartbeat = createLoneHeartbeat({
      ...{ nodeId, about },
      ...(deps.takesWorkers === true && { guests: { store: store.nodes, clock } }),
    })
    return {
      heartbeat,
      counts: createSharedCounts(heartbeat),
      leadership: UNCONTESTED,
      contend: () => UNCONTESTED,
      ...{ own, listensAt },
      drain() {
        isDraining = true
      },
      [Symbol.asyncDispose]: () => heartbeat[Symbol.asyncDispose](),
    }
  }
  const heartbeat = await openHeartbeat({
    ...{ store: store.nodes, nodeId, about, clock, log },
    ...(sampleTime !== undefined && { sampleTime }),
  })
  counts = createSharedCounts(heartbeat)
  const ends: (() => void)[] = []

  function contend(name: string, mayLead: () => Promise<boolean>): Leadership {
    const leadership = createLeadership({ name, clock, forMs: LEAD_MS, mayLead })
    heartbeat.contend(leadership)
    ends.push(() => leadership.end())
    return leadership
  }

  return {
    heartbeat,
    counts,
    leadership: contend(HOUSEKEEPING, role === 'worker' ? () => isWithoutServers(heartbeat) : async () => true),
    contend: (name) => contend(name, async () => true),
    ...{ own, listensAt },
    drain() {
      isDraining = true
      void heartbeat.beat()
    },
    async [Symbol.asyncDispose]() {
      // What it holds is given up with its last beat, in one write.
      for (const end of ends) end()
      await heartbeat[Symbol.asyncDispose]()
    },
  }
}

/**
 * Retention and the rest of the chores follow the settings of the processes that answer clients. A worker knows those settings only
 * if it was given them, so it does the chores only where no other process is there to do them.
 */
async function isWithoutServers(heartbeat: Heartbeat): Promise<boolean> {
  return (await heartbeat.findLive()).every(({ about }) => about.role === 'worker')
}

/**
 * The clock of the service: that of its store, so that leases and windows mean the same to every process. An embedded store has this
 * machine's time; the time of a database server is followed, by what every beat brings back.
 */
export interface ServiceClock {
  readonly clock: Clock
  /** Sets the clock by the store's before anything depends on it. */
  begin(store: Pick<Store, 'readTime'>): Promise<void>
  /** Keeps it set: asks for the store's time once. null: the store has none of its own. */
  sample(read: () => Promise<Date | null>): Promise<void>
  /** False while the store's time and the time that passes here contradict each other. */
  isSane(): boolean
}

// The first answers come over connections that are still being made.
const FIRST_SAMPLES = 5
const MAX_DRIFT_MS = 2000

export function openClock({ isFollowed, log }: { readonly isFollowed: boolean; readonly log: Log }): ServiceClock {
  if (!isFollowed) return toServiceClock(systemClock)
  const clock = createFollowedClock(systemClock.now())
  const isSane = () => clock.driftMs() <= MAX_DRIFT_MS
  return {
    clock,
    isSane,
    async begin(store) {
      for (let count = 0; count < FIRST_SAMPLES; count++) await clock.sample(() => store.readTime())
    },
    async sample(read) {
      await clock.sample(read)
      if (!isSane()) log.warn({ driftMs: clock.driftMs() }, 'the time of the store jumped, or that of this machine')
    },
  }
}

/** A clock that needs no setting. */
export function toServiceClock(clock: Clock): ServiceClock {
  return { clock, isSane: () => true, async begin() {}, sample: async (read) => void (await read()) }
}
