/**
 * Joins the engines of this process with those of all others: what each can run is published and remembered, and a server that
 * several processes were given is driven by one of them.
 */
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { readCopyPool } from '../../domain/engine/copy-pool.ts'
import { readCatalog } from '../../domain/engine/directory/catalog-text.ts'
import { type CommandEngine, createCommandEngine } from '../../domain/engine/directory/engine-commands.ts'
import { createEngineDirectory, type EngineDirectory } from '../../domain/engine/directory/engine-directory.ts'
import { EnginePublisher } from '../../domain/engine/directory/engine-publisher.ts'
import type { EngineWill } from '../../domain/engine/directory/engine-registry.ts'
import {
  createFollowedEngines,
  createListRefresh,
  type OtherEngine,
} from '../../domain/engine/directory/followed-engines.ts'
import { createFleet, type Fleet } from '../../domain/engine/fleet/fleet.ts'
import {
  ALL_ENGINES,
  createEngineLeases,
  type EngineLeases,
  type FleetEngine,
} from '../../domain/engine/fleet/fleet-engine.ts'
import type { RecycleLimits, RememberedEngine } from '../../domain/engine/fleet/fleet-member.ts'
import type { WarmPlans } from '../../domain/engine/warm/warm-plans.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { Store, StoreGlance } from '../../domain/store.ts'
import { keyIdOf } from '../../domain/workers/held-claims.ts'
import type { WorkerKeys } from '../../domain/workers/worker-keys.ts'
import { createLaneTable } from '../../domain/workflows/needs.ts'
import type { ServiceNodeParts } from '../process/service-node.ts'

/** Does what an operator wants with an engine of this process. */
type ObeyWill = (engineId: string, will: EngineWill) => void

export interface OpenedDirectory extends AsyncDisposable {
  readonly fleet: Fleet
  readonly directory: EngineDirectory
  readonly chores: readonly Chore[]
  /** What one engine can run, here or elsewhere; null: there is none, or it was never reached. */
  catalogOf(engineId: string): NodeCatalog | null
  /** Reads the registry of all engines again. */
  follow(): Promise<void>
  /** Asks the engines of all processes what they can run, unless that was asked a moment ago; never rejects. */
  refreshLists(): Promise<void>
  /** Connects what drains and resumes engines here, which is made later. */
  toCommand(obey: ObeyWill): CommandEngine
}

interface DirectoryParts {
  readonly store: Pick<Store, 'engines' | 'nodes'>
  readonly node: Pick<ServiceNodeParts, 'heartbeat'>
  readonly recycleLimits: RecycleLimits
  /** What engines have to have loaded before they count as ready; left out: nothing. */
  readonly warm?: WarmPlans
  /** Left out: the fleet's own. */
  readonly quarantineMs?: number
  /** Whether workers of other machines may join; left out: they may not. */
  readonly takesWorkers?: boolean
  /** Whether engines of releases may come and go; left out: there are none. */
  readonly hasCopies?: boolean
  /** Of those workers; left out: there are none. */
  readonly workerKeys?: Pick<WorkerKeys, 'find'>
  /** Left out: no other process hears of this one. */
  readonly bus?: Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'>
  /** What the store showed a moment ago; left out, or null: it was not looked at. */
  readonly glance?: () => StoreGlance | null
  readonly clock: Clock
  readonly log: Log
}

interface EngineClaims {
  readonly leases: EngineLeases
  /** Opens the engines, which may ask whether they are held, and joins them with the others. */
  open(engines: readonly FleetEngine[]): Promise<OpenedDirectory>
}

const FOLLOW_MS = 2000
// Beside the beats, for a process that is alone and has none: what it remembers must not grow old.
const PUBLISH_MS = 600_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** A server may be away for a week before its waiting jobs count as stranded. */
const FORGET_SHARED_MS = 7 * DAY_MS
/** An engine of a process that died comes back under another id, if at all. */
const FORGET_OWN_MS = HOUR_MS

export function claimEngines(parts: DirectoryParts): EngineClaims {
  const { takesWorkers = false, hasCopies = false } = parts
  const contested = parts.node.heartbeat.isAlone ? null : createEngineLeases(parts.clock)
  const leases = contested ?? ALL_ENGINES
  return {
    leases,
    async open(engines) {
      const { store, node, recycleLimits, quarantineMs, clock, log } = parts
      const { heartbeat } = node
      const lanes = createLaneTable()
      // The built-in engine alone runs every job that it accepts: no lanes are needed, and its catalog need not be stored.
      const hasLanes = contested !== null || takesWorkers || hasCopies || engines.some(({ isResident }) => !isResident)
      const followed = createFollowed(parts, contested)
      const fleet = createFleet(engines, {
        clock,
        log,
        hasLanes,
        lanes,
        recycleLimits,
        ...(parts.warm !== undefined && { warmPlan: parts.warm.planOf }),
        ...(quarantineMs !== undefined && { quarantineMs }),
        isDriven: leases.isDriven,
        ...(followed !== null && { others: followed.list }),
        ...(hasLanes && { remembered: await recallEngines(store.engines, engines) }),
      })
      const publisher = hasLanes
        ? new EnginePublisher({ registry: store.engines, fleet, leases: contested, heartbeat, clock, log })
        : null
      if (publisher !== null) heartbeat.onBeat(() => publisher.publishNews())
      followed?.onChange(() => fleet.announce())
      await followed?.refresh()
      const directory = createEngineDirectory({
        fleet,
        lanes,
        nodeId: heartbeat.nodeId,
        ...(followed && { others: followed.list }),
      })
      const lists = createListRefresh({
        fleet,
        others: followed === null ? null : { ...followed, list: () => followed.list().filter(isOfProcess) },
        bus: parts.bus ?? null,
        clock,
        log,
      })
      return {
        fleet,
        directory,
        refreshLists: lists.refresh,
        chores: [
          ...(followed === null ? [] : [toChore('follow-engines', FOLLOW_MS, followed.look)]),
          ...(publisher === null ? [] : [toChore('publish-engines', PUBLISH_MS, () => publisher.publish())]),
          ...(publisher === null ? [] : [createForgetChore(parts)]),
          ...(parts.warm === undefined || !hasLanes ? [] : [createWarmChore(parts.warm, fleet)]),
        ],
        toCommand(obey) {
          followed?.onWill(obey)
          const registry = followed === null ? null : store.engines
          const isDriven = (engineId: string) => leases.isDriven(engineId) && keyIdOf(engineId) === null
          return createCommandEngine({ directory, isDriven, obey, registry })
        },
        catalogOf(engineId) {
          // The built-in engine loads nothing, and workers that joined do not hear what theirs should.
          const isResident = engines.some((each) => each.id === engineId && each.isResident === true)
          if (isResident || keyIdOf(engineId) !== null) return null
          const own = fleet.engines().find(({ id }) => id === engineId)
          return own?.catalog() ?? followed?.list().find(({ status }) => status.id === engineId)?.catalog ?? null
        },
        follow: async () => followed?.refresh(),
        async [Symbol.asyncDispose]() {
          lists[Symbol.dispose]()
          await publisher?.[Symbol.asyncDispose]()
          await fleet[Symbol.asyncDispose]()
        },
      }
    },
  }
}

/** What others drive. A process that has the store alone knows of no other engines than those of workers that joined. */
function createFollowed(parts: DirectoryParts, contested: EngineLeases | null) {
  const { store, takesWorkers, workerKeys, clock, log } = parts
  const { engines } = store
  const poolsOf = (engineId: string) => {
    const copy = copyPoolOf(engineId)
    const keyId = keyIdOf(engineId)
    if (keyId === null) return copy === null ? 'every' : new Set([copy])
    const worker = workerKeys?.find(keyId) ?? null
    if (copy !== null) return worker?.hasBuilds === true ? new Set([copy]) : null
    return worker?.pools ?? null
  }
  if (contested !== null) {
    const readSign = () => parts.glance?.()?.engines ?? null
    return createFollowedEngines({ registry: engines, leases: contested, poolsOf, readSign, clock, log })
  }
  if (takesWorkers !== true) return null
  const registry = {
    list: async () => (await engines.list()).filter(({ status: { id } }) => keyIdOf(id) !== null),
    findCatalogs: engines.findCatalogs,
  }
  return createFollowedEngines({ registry, leases: NO_ENGINES, poolsOf, clock, log })
}

/** An engine of a copy bears the name of its pool. */
export function toCopyEngineName(pool: string, number: number): string {
  return `${pool}/${number}`
}

function copyPoolOf(engineId: string): string | null {
  const pool = engineId.split('/', 1)[0] ?? ''
  return readCopyPool(pool) === null ? null : pool
}

/** Not of a worker that joined: those hear nothing on the bus. */
function isOfProcess({ status: { id } }: OtherEngine): boolean {
  return keyIdOf(id) === null
}

const NO_ENGINES: EngineLeases = { isHeld: () => false, isDriven: () => false }

function toChore(name: string, everyMs: number, run: Chore['run']): Chore {
  return { name, runs: 'each', everyMs, run }
}

/** Plans of other processes are learnt, and engines that could not be warmed are tried again. */
function createWarmChore(warm: WarmPlans, fleet: Fleet): Chore {
  return toChore('warm-engines', FOLLOW_MS, async () => {
    await warm.refresh()
    fleet.warmCold()
  })
}

function createForgetChore({ store: { engines, nodes }, workerKeys, clock }: DirectoryParts): Chore {
  const isOrphaned = (engineId: string) => {
    const keyId = keyIdOf(engineId)
    return keyId !== null && (workerKeys?.find(keyId) ?? null) === null
  }
  return {
    name: 'forget-engines',
    runs: 'once',
    everyMs: HOUR_MS,
    async run() {
      const before = (ms: number) => new Date(clock.now().getTime() - ms)
      const orphaned = (await engines.list()).map(({ status: { id } }) => id).filter(isOrphaned)
      await engines.forget({
        ...{ sharedBefore: before(FORGET_SHARED_MS), ownBefore: before(FORGET_OWN_MS) },
        engineIds: orphaned,
      })
      await nodes.forgetNodes(before(DAY_MS))
    },
  }
}

/**
 * What each engine could run when it was last seen. After a start while an engine is away its classes and weights are still known,
 * so that its jobs are accepted and wait for it.
 */
export async function recallEngines(
  registry: Store['engines'],
  engines: readonly Pick<FleetEngine, 'id' | 'isResident'>[],
): Promise<ReadonlyMap<string, RememberedEngine>> {
  const ids = new Set(engines.filter(({ isResident }) => !isResident).map(({ id }) => id))
  const hashes = new Map(
    (await registry.list()).flatMap(({ status: { id }, catalogHash }): [string, string][] =>
      ids.has(id) && catalogHash !== null ? [[id, catalogHash]] : [],
    ),
  )
  const texts = await registry.findCatalogs([...new Set(hashes.values())])
  const stored = new Map([...texts].map(([hash, text]) => [hash, readCatalog(text)]))
  return new Map([...hashes].flatMap(([id, hash]) => (stored.has(hash) ? [[id, stored.get(hash)!] as const] : [])))
}
