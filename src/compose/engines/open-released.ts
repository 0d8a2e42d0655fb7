/** Deployments on releases: what accounts do with them, and the engines of this process that serve them. */
import { randomBytes } from 'node:crypto'
import { totalmem } from 'node:os'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { createDoorbell, sleep } from '../../../lib/waiting/sleep.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import { toRegions } from '../../domain/deployments/released/compute.ts'
import type { CopyEngines } from '../../domain/deployments/released/copy-engines.ts'
import { createCopyKeeper } from '../../domain/deployments/released/copy-keeper.ts'
import { ReleasedDeployments } from '../../domain/deployments/released/released-deployments.ts'
import type { ReleaseSource } from '../../domain/deployments/released/releases.ts'
import { readCopyPool } from '../../domain/engine/copy-pool.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { BringRelease } from '../../domain/environments/bring-release.ts'
import type { BuildTarget } from '../../domain/environments/definition.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import type { Leadership } from '../../domain/service-nodes/leadership.ts'
import type { Store } from '../../domain/store.ts'
import type { StartableRelease } from './copy-engines.ts'
import type { JoinedMachines } from './joined-machines.ts'

/** Releases, as far as deployments need them. */
export interface ReleasesHere {
  readonly source: ReleaseSource
  /** null: it is not on this machine. */
  readonly find: (releaseId: string, gpuClass: string) => Promise<StartableRelease | null>
  /** Begins to make it here, where it can be. */
  readonly bring: BringRelease['bring']
  readonly mayDeploy: (accountId: string) => boolean
  /** What releases can be built for, which is what engines here run on. */
  readonly targets: readonly BuildTarget[]
}

/** Nobody may deploy anything. */
export const NO_RELEASES: ReleasesHere = {
  source: { find: async () => null },
  find: async () => null,
  bring: async () => ({ place: 'gone', reason: 'nothing is built or deployed on this machine' }),
  mayDeploy: () => false,
  targets: [],
}

interface ReleasedParts {
  readonly store: Pick<Store, 'released' | 'audited' | 'deployments'>
  readonly releases: ReleasesHere
  /** null: releases are off. */
  readonly deployments: Deployments | null
  readonly fleet: Pick<Fleet, 'devices' | 'onChange' | 'logOf' | 'status'>
  readonly bus: Pick<EventBus<LiveEvent>, 'onWork'>
  /** null: no engine of a release is started by this process. */
  readonly engines: (CopyEngines & AsyncDisposable) | null
  /** Those that joined; null: none can. */
  readonly machines: JoinedMachines | null
  readonly workers: Parameters<typeof createCopyKeeper>[0]['workers'] | null
  readonly leadership: Leadership
  readonly idleMs: number
  readonly drainMs: number
  readonly clock: Clock
  readonly log: Log
}

export type OpenedReleased = ReturnType<typeof openReleased>

const LOOK_MS = 1000
// Many changes of one moment are one look.
const GAP_MS = 100
const DRAIN_MAX_MS = 60_000

export function openReleased(parts: ReleasedParts) {
  const { store, releases, deployments, fleet, engines, machines, clock } = parts
  const bell = createDoorbell()
  const onChanged = async () => {
    await deployments?.refresh()
    bell.ring()
  }
  const listCompute = async () => {
    const up = fleet.status().filter(({ id }) => readCopyPool(id.split('/')[0] ?? '') !== null)
    const joined = (await machines?.list()) ?? []
    const upElsewhere = joined.flatMap(({ copies }) => copies).reduce((sum, copy) => sum + copy.up, 0)
    const freeRoom = (engines?.room ?? 0) - upElsewhere - up.filter(({ state }) => state !== 'starting').length
    const kinds = new Set([releases, ...joined].flatMap(({ targets }) => targets.map(({ gpu }) => gpu)))
    return toRegions({ devices: fleet.devices(), kinds: [...kinds], memoryBytes: totalmem(), freeRoom })
  }
  const released = new ReleasedDeployments({
    ...{ store: store.released, releases: releases.source, mayDeploy: releases.mayDeploy, listCompute, clock },
    audited: (entry) => store.audited(entry),
    newId: newDeploymentId,
    onChanged: async () => {
      await deployments?.announceChange()
      await onChanged()
    },
  })
  const looking = startLooking(parts, { bell, onChanged })
  return {
    released,
    mayDeploy: releases.mayDeploy,
    listCompute,
    countPools: store.deployments.count,
    /** What the engines of a copy printed, newest last. */
    logOf: (pool: string) => readLog(fleet, pool),
    engines: (pool: string) => fleet.status().filter(({ id }) => id.startsWith(`${pool}/`)),
    start: looking.start,
    async [Symbol.asyncDispose]() {
      await looking.end()
      await engines?.[Symbol.asyncDispose]()
    },
  }
}

interface Looking {
  readonly bell: ReturnType<typeof createDoorbell>
  readonly onChanged: () => Promise<void>
}

function startLooking(parts: ReleasedParts, { bell, onChanged }: Looking) {
  const { store, deployments, fleet, bus, engines, workers, leadership, clock, log } = parts
  const closing = new AbortController()
  if (deployments === null || engines === null || workers === null) return { start: () => {}, end: async () => {} }
  const keeper = createCopyKeeper({
    ...{ engines, workers, onChanged, clock, log, idleMs: parts.idleMs },
    store: store.released,
    loads: store.deployments.loads,
    copiesOf: (id) => deployments.copiesOf(id),
    drainMs: Math.min(parts.drainMs, DRAIN_MAX_MS),
  })
  let running: Promise<void> = Promise.resolve()
  let stops: (() => void)[] = []

  async function look(): Promise<void> {
    try {
      if (!leadership.isHeld()) return await engines?.letGo()
      await deployments?.refresh()
      await keeper.look()
    } catch (error) {
      log.error({ err: error }, 'deployments on releases could not be looked after; the next look tries again')
    }
  }

  async function loop(): Promise<void> {
    const { signal } = closing
    while (!signal.aborted) {
      bell.forget()
      await look()
      await sleep(GAP_MS, signal)
      await bell.wait(LOOK_MS, signal)
    }
  }

  return {
    start() {
      if (stops.length > 0) return
      stops = [
        fleet.onChange(() => bell.ring()),
        bus.onWork((pool) => {
          if (pool !== undefined && readCopyPool(pool) !== null) bell.ring()
        }),
      ]
      running = loop()
    },
    async end() {
      closing.abort()
      for (const stop of stops) stop()
      await running
      await keeper.end()
    },
  }
}

const ID_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'
const ID_LENGTH = 12

function newDeploymentId(): string {
  // 252 is a multiple of 36: no letter is more likely than another.
  const letters: string[] = []
  while (letters.length < ID_LENGTH)
    for (const byte of randomBytes(ID_LENGTH)) if (byte < 252) letters.push(ID_LETTERS[byte % ID_LETTERS.length] ?? 'a')
  return `dep-${letters.slice(0, ID_LENGTH).join('')}`
}

/** null: no engine of the copy runs in this process, or none was started yet. */
function readLog(fleet: Pick<Fleet, 'status' | 'logOf'>, pool: string) {
  const logs = fleet.status().flatMap(({ id }) => (id.startsWith(`${pool}/`) ? (fleet.logOf(id) ?? []) : []))
  const newest = logs.toSorted((one, other) => one.beganAt.getTime() - other.beganAt.getTime()).at(-1)
  const lines = newest?.lines() ?? []
  if (newest === undefined) return null
  return { text: lines.map(({ text }) => text).join('\n'), at: lines.at(-1)?.at ?? newest.beganAt }
}
