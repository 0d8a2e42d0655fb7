/**
 * The engines that other processes drive, as the registry has them: a copy in memory, looked after every two seconds. What an
 * operator wants of an engine that is driven here arrives on the same way.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { type Clock, uptimeMs } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin, sleep } from '../../../../lib/waiting/sleep.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { EngineStatus } from '../fleet/engine-status.ts'
import type { EngineLeases } from '../fleet/fleet-engine.ts'
import type { WeightFile } from '../weights/weight-files.ts'
import { readCatalog, type StoredCatalog } from './catalog-text.ts'
import type { EngineRecord, EngineRegistry, EngineWill } from './engine-registry.ts'

/** Whose jobs an engine may run. Those of the service's own processes may run all. */
type EnginePools = 'every' | ReadonlySet<string>

/** An engine that is not driven here. */
export interface OtherEngine {
  readonly status: EngineStatus
  /** null: what it can run is not known. */
  readonly catalog: NodeCatalog | null
  /** The weights that it lists; null: it lists none. */
  readonly weights: readonly WeightFile[] | null
  /** The process that drives it; null: none at the moment. */
  readonly drivenBy: string | null
  readonly pools: EnginePools
}

interface FollowedEngines {
  list(): readonly OtherEngine[]
  /** Reads the registry. */
  refresh(): Promise<void>
  /** Reads it if anything in it has changed since it was read last, or if that was some time ago. */
  look(): Promise<void>
  /** Called after a change of what exists elsewhere. */
  onChange(listener: () => void): void
  /** Called once for each wish about an engine that is driven here, and with the present wish when this process took it. */
  onWill(listener: (engineId: string, will: EngineWill) => void): void
}

interface FollowDeps {
  readonly registry: Pick<EngineRegistry, 'list' | 'findCatalogs'>
  readonly leases: EngineLeases
  /** null: the key of the engine is gone, and the engine is ignored. Left out: every engine is the service's own. */
  readonly poolsOf?: (engineId: string) => EnginePools | null
  /** Another text than before when something in the registry has changed; null: that is not known. Left out: it never is. */
  readonly readSign?: () => string | null
  readonly clock: Clock
  readonly log: Log
}

/** What the registry looked like when it was read. */
interface Reading {
  /** null: not known, or not all of it counted here. */
  readonly sign: string | null
  /** It is out of date then, whatever the sign says: a hold that was not renewed lapses. */
  readonly againAtMs: number
}

/** That an engine is still held is no change; it is read again well before the hold lapses (30 s). */
const READ_ANYWAY_MS = 10_000

export function createFollowedEngines(deps: FollowDeps): FollowedEngines {
  const { registry, leases, clock, log, poolsOf = () => 'every', readSign = () => null } = deps
  const catalogs = new Map<string, StoredCatalog>()
  const obeyed = new Map<string, number>()
  let others: readonly OtherEngine[] = []
  let tellChange = () => {}
  let read: Reading | null = null
  let tellWill: (engineId: string, will: EngineWill) => void = () => {}

  async function readCatalogs(records: readonly EngineRecord[]): Promise<void> {
    const used = new Set(records.map(({ catalogHash }) => catalogHash).filter((hash) => hash !== null))
    for (const known of catalogs.keys()) if (!used.has(known)) catalogs.delete(known)
    const missing = [...used].filter((hash) => !catalogs.has(hash))
    for (const [hash, text] of await registry.findCatalogs(missing)) {
      try {
        catalogs.set(hash, readCatalog(text))
      } catch (error) {
        log.error({ err: error, hash }, 'what an engine can run could not be read')
      }
    }
  }

  function toOther({ status, catalogHash, nodeId, heldUntil }: EngineRecord): OtherEngine[] {
    const pools = poolsOf(status.id)
    if (pools === null) return []
    const isDriven = nodeId !== '' && heldUntil > clock.now()
    const stored = catalogHash === null ? undefined : catalogs.get(catalogHash)
    return [
      {
        status: isDriven ? status : { ...status, state: 'lost', running: 0 },
        catalog: stored?.catalog ?? null,
        weights: stored?.weights ?? null,
        drivenBy: isDriven ? nodeId : null,
        pools,
      },
    ]
  }

  function obey({ status: { id }, will, willNumber }: EngineRecord): void {
    const before = obeyed.get(id)
    obeyed.set(id, willNumber)
    // One that was just taken is as its new process made it: open.
    const isNews = before === undefined ? will !== 'open' : before !== willNumber
    if (isNews) tellWill(id, will)
  }

  async function refresh(): Promise<void> {
    // Asked first: what changes while the registry is read is a change since then.
    const [sign, now] = [readSign(), clock.now()]
    const all = await registry.list()
    const records = all.filter(({ status: { id } }) => poolsOf(id) !== null)
    await readCatalogs(records)
    const before = others
    others = records.filter(({ status }) => !leases.isHeld(status.id)).flatMap(toOther)
    for (const { status } of others) obeyed.delete(status.id)
    for (const record of records) if (leases.isHeld(record.status.id)) obey(record)
    const lapses = all.filter(({ heldUntil }) => heldUntil > now).map(({ heldUntil }) => heldUntil.getTime())
    // Whom an engine belongs to may become known here after the engine itself.
    const isWhole = records.length === all.length
    read = { sign: isWhole ? sign : null, againAtMs: Math.min(now.getTime() + READ_ANYWAY_MS, ...lapses) }
    if (!isSame(before, others)) tellChange()
  }

  return {
    list: () => others,
    onChange(listener) {
      tellChange = listener
    },
    onWill(listener) {
      tellWill = listener
    },
    refresh,
    async look() {
      const sign = readSign()
      const isAsRead = read !== null && sign !== null && sign === read.sign && clock.now().getTime() < read.againAtMs
      const allCount = others.every(({ status: { id } }) => poolsOf(id) !== null)
      if (!isAsRead || !allCount) await refresh()
    },
  }
}

/** Whether lanes and offers come out the same. */
function isSame(before: readonly OtherEngine[], after: readonly OtherEngine[]): boolean {
  return (
    before.length === after.length &&
    before.every(({ status, catalog }, index) => {
      const { status: now, catalog: present } = after[index] as OtherEngine
      return status.id === now.id && status.state === now.state && catalog === present
    })
  )
}

/**
 * Asks the engines what they can run, before somebody is told that a class or a file is missing: it may have been put on a server a
 * moment ago. However many ask, the engines are asked once, and at most every few seconds. Engines of other processes are asked by
 * those, which hear of it on the bus; what they find is read from the registry.
 */
interface ListRefreshDeps {
  readonly fleet: { refreshLists(): Promise<void> }
  /** Engines that other processes drive; null: there are no other processes. */
  readonly others: { list(): readonly OtherEngine[]; refresh(): Promise<void> } | null
  readonly bus: Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'> | null
  readonly clock: { now(): Date }
  readonly log: Log
}

interface ListRefresh extends Disposable {
  /** Never rejects, and settles within a bounded time. */
  refresh(): Promise<void>
}

/** Lists that are no older are not asked for again. */
const FRESH_MS = 3000
/** A server with many custom nodes takes seconds to describe them. */
const WITHIN_MS = 5000
/** For other processes to hear of it, to ask their engines, and to publish what they found. */
const OTHERS_WITHIN_MS = 3000
const LOOK_MS = 200

export function createListRefresh({ fleet, others, bus, clock, log }: ListRefreshDeps): ListRefresh {
  let asking: Promise<void> | null = null
  let askedAtMs = Number.NEGATIVE_INFINITY
  let isTelling = false

  async function ask(): Promise<void> {
    await Promise.all([settlesWithin(fleet.refreshLists(), WITHIN_MS), askOthers()])
    askedAtMs = uptimeMs()
    asking = null
  }

  /** Until one of them can run something else than before, or the time is over: nobody says that nothing has changed. */
  async function askOthers(): Promise<void> {
    if (others === null || bus === null) return
    const catalogsOf = () => others.list().map(({ catalog }) => catalog)
    const before = catalogsOf()
    if (!others.list().some(({ status }) => status.state === 'ready')) return
    isTelling = true
    bus.publishDirectory({ directory: 'engine-lists', version: clock.now().getTime() })
    isTelling = false
    const untilMs = uptimeMs() + OTHERS_WITHIN_MS
    while (uptimeMs() < untilMs && catalogsOf().every((catalog, index) => catalog === before[index])) {
      await sleep(LOOK_MS)
      await others.refresh().catch((error) => log.debug({ err: error }, 'the engines could not be read'))
    }
  }

  // Those who asked here are asked already.
  const stop = bus?.onDirectory(({ directory }) => {
    if (directory === 'engine-lists' && !isTelling) void fleet.refreshLists()
  })

  return {
    async refresh() {
      if (asking === null && uptimeMs() - askedAtMs < FRESH_MS) return
      asking ??= ask()
      await asking
    },
    [Symbol.dispose]: () => stop?.(),
  }
}
