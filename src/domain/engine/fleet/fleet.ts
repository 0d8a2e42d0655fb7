/**
 * The engines of this process as one. Knows which of them has a free slot for which lane of the queue; hands out slots and takes
 * them back with a report of the run. Which job is next is the store's decision; running it is the worker's, reaching an engine
 * the adapter's, and what the engines of all processes can run together stands in the directory.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import { ServiceError } from '../../errors.ts'
import { type LaneTable, needsOf } from '../../workflows/needs.ts'
import { mayRun } from '../copy-pool.ts'
import type { OtherEngine } from '../directory/followed-engines.ts'
import { toWarmGraphs, type WarmPlan } from '../warm/warm-plan.ts'
import { warmUp } from '../warm/warm-up.ts'
import type { WeightFile } from '../weights/weight-files.ts'
import type { WeightPlace } from '../weights/weight-store.ts'
import { createSlot, type EngineSlot } from './engine-slot.ts'
import type { EngineState, EngineStatus } from './engine-status.ts'
import { createFairLock } from './fair-lock.ts'
import type { EngineDevice, EngineLog, FleetEngine } from './fleet-engine.ts'
import { FleetMember, type RecycleLimits, type RememberedEngine } from './fleet-member.ts'
import { type DistantEngine, type EngineOffer, offerLanes, servedLanes } from './lane-offers.ts'
import { RunJudge } from './run-judge.ts'

export interface FleetOptions {
  readonly clock: Clock
  readonly log: Log
  /** false: every engine runs everything, so jobs have no lanes and are claimed in plain order. */
  readonly hasLanes: boolean
  /** What is known of the lanes; shared with the directory. */
  readonly lanes: LaneTable
  /** Whether this process may give an engine work; left out: it may. */
  readonly isDriven?: (engineId: string) => boolean
  /** Engines of other processes; left out: there are none. */
  readonly others?: () => readonly OtherEngine[]
  /** For a process that does not know those: whether one of them can run jobs of a lane. Left out: they are known. */
  readonly isServedElsewhere?: (lane: string) => boolean
  readonly recycleLimits?: RecycleLimits
  /** What an engine has to have loaded before it counts as ready; left out: nothing. */
  readonly warmPlan?: (engineId: string) => WarmPlan | null
  readonly retryMs?: number
  readonly quarantineMs?: number
  /** How long one engine is waited for when all are asked what they can run. */
  readonly refreshWithinMs?: number
  /** What each engine could run when a process before us last saw it. */
  readonly remembered?: ReadonlyMap<string, RememberedEngine>
}

/** The job that a slot is for. */
interface PlacedJob {
  readonly jobId: string
  readonly lane: string
}

interface ResidentRoom {
  readonly engineId: string
  /** True also where how much runs is bounded by the workers of each pool, not by slots. */
  readonly hasRoom: boolean
  /** Those that it serves; null: it takes whatever waits. */
  readonly lanes: readonly string[] | null
}

/** An engine of this process, for the registry of all. */
export interface PublishableEngine {
  readonly isShared: boolean
  /** null: it has not been reached. */
  readonly info: ObjectInfo | null
  /** Its catalog, where that says more than its object info. */
  readonly own: NodeCatalog | null
  /** As it lists them; null: it does not. */
  readonly weights: readonly WeightFile[] | null
  readonly status: EngineStatus
  takeOver(): Promise<void>
}

export const NEVER_RECYCLE: RecycleLimits = { maxJobs: null, maxMemoryBytes: null, maxAgeMs: null }
const RECYCLE_WITHIN_MS = 30_000
/** Large weights come from slow disks. */
const WARM_WITHIN_MS = 15 * 60_000
const MAX_LEAVING = 256
/** One that is lost meanwhile answers when it is back. */
const REFRESH_WITHIN_MS = 30_000

export type Fleet = EngineFleet

export function createFleet(engines: readonly FleetEngine[], options: FleetOptions): Fleet {
  return new EngineFleet(engines, options)
}

class EngineFleet implements AsyncDisposable {
  readonly #options: FleetOptions
  #members: readonly FleetMember[]
  readonly #lanes: LaneTable
  readonly #others: () => readonly OtherEngine[]
  readonly #listeners = new Set<() => void>()
  readonly #subscriptions = new Map<FleetMember, () => void>()
  readonly #recycling = new Set<Promise<void>>()
  readonly #warming = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  readonly #claimLock = createFairLock()
  readonly #judge: RunJudge
  /** Those that were removed, for the ends of their last runs. */
  readonly #leaving = new BoundedMap<string, FleetMember>(MAX_LEAVING)
  #held: string | null = null
  #refreshing: Promise<void> | null = null

  constructor(engines: readonly FleetEngine[], options: FleetOptions) {
    this.#options = options
    this.#lanes = options.lanes
    this.#others = options.others ?? (() => [])
    const { clock, remembered } = options
    this.#members = engines.map((engine) => this.#toMember(engine, remembered?.get(engine.id) ?? null))
    this.#judge = new RunJudge(
      {
        hasOther: (except, lane) => this.hasOther(except, lane),
        hasTrusted: (except, lane) => this.#hasTrusted(except, lane),
        tryUnproved: () => {
          for (const { suspension } of this.#members) suspension.tryIfUnproved()
        },
        willHaveOther: (except, lane) => this.hasOther(except, lane, ['ready', 'quarantined']),
        isOnTrial: (engineId) => this.#find(engineId).isOnTrial,
        isResting: (engineId) => this.#find(engineId).state() === 'quarantined',
        restsByVerdict: (engineId) => this.#find(engineId).suspension.restsByVerdict,
        rest: (engineId, reason, jobId) => this.#rest(engineId, reason, jobId),
        pause: (engineId, reason) => this.#find(engineId).pause(reason),
        doubt: (engineId, reason, jobId) => this.#find(engineId).doubt(reason, jobId),
        acquit: (engineId, jobId) => this.#find(engineId).suspension.acquit(jobId),
        confirm: (engineId, jobId) => this.#find(engineId).suspension.confirm(jobId),
        shorten: (engineId, jobId) => this.#find(engineId).suspension.shorten(jobId),
      },
      clock,
    )
    for (const member of this.#members) this.#follow(member)
  }

  #toMember(engine: FleetEngine, remembered: RememberedEngine | null): FleetMember {
    const { clock, recycleLimits = NEVER_RECYCLE, retryMs = 1000, quarantineMs = 60_000 } = this.#options
    const { isDriven = () => true } = this.#options
    return new FleetMember(engine, {
      ...{ clock, recycleLimits, retryMs, quarantineMs, remembered },
      isDriven: () => isDriven(engine.id),
      warmPlan: () => (engine.isResident ? null : (this.#options.warmPlan?.(engine.id) ?? null)),
      heldReason: () => this.#held,
    })
  }

  #follow(member: FleetMember): void {
    this.#subscriptions.set(
      member,
      member.engine.onChange(() => this.#observe(member)),
    )
    this.#observe(member)
  }

  /** One more engine, whose maker closes it after it has removed it. `remembered`: what it could run when it was last seen. */
  add(engine: FleetEngine, remembered: RememberedEngine | null): void {
    const member = this.#toMember(engine, remembered)
    this.#members = [...this.#members, member]
    this.#follow(member)
  }

  /** It gets no more work. Harmless for one that is not there. */
  remove(engineId: string): void {
    const member = this.#members.find(({ id }) => id === engineId)
    if (member === undefined) return
    this.#subscriptions.get(member)?.()
    this.#subscriptions.delete(member)
    this.#members = this.#members.filter((other) => other !== member)
    this.#leaving.set(engineId, member)
    this.#changed()
  }

  /** How many runs all engines together take. */
  get concurrency(): number {
    return this.#members.reduce((sum, { engine }) => sum + engine.concurrency, 0)
  }

  get hasLanes(): boolean {
    return this.#options.hasLanes
  }

  /** What each engine can run, by itself. */
  engines(): readonly Pick<FleetMember, 'id' | 'pool' | 'catalog' | 'weightFiles'>[] {
    for (const member of this.#members) member.observe()
    return this.#members
  }

  /** What the engines compute on, as far as they say. */
  devices(): EngineDevice[] {
    return this.#members.flatMap(({ engine }) => engine.device?.() ?? [])
  }

  /** No run needs the engine, not even its files. */
  isUnused(engineId: string): boolean {
    return this.#find(engineId).isUnused
  }

  /** What an engine printed lately; null: there is none with this id, or nobody listens to it. */
  logOf(engineId: string): EngineLog | null {
    return this.#members.find(({ id }) => id === engineId)?.engine.log ?? null
  }

  /** The engines whose folders of models this process can write. */
  weightPlaces(): readonly WeightPlace[] {
    return this.#members.flatMap(({ id, engine: { weightStore } }) =>
      weightStore === undefined ? [] : [{ engineId: id, store: weightStore }],
    )
  }

  /** Engines with a free slot for jobs of a pool, each with the lanes it serves. Those that would have to unload least come first. */
  offers(pool: string): EngineOffer[] {
    for (const member of this.#members) {
      member.observe()
      this.#recycleWhenDue(member)
    }
    if (!this.#options.hasLanes) {
      // How much runs in this process is bounded by the workers of each pool, not by slots.
      return this.#members
        .filter((member) => mayRun(member.pool, pool) && member.isAvailable())
        .map(({ id }) => ({ engineId: id, lanes: null }))
    }
    const free = this.#members.filter(
      (member) => mayRun(member.pool, pool) && member.hasRoom() && member.recycleReason() === null,
    )
    return offerLanes(free, { all: this.#members, others: this.#others(), lanes: this.#lanes })
  }

  /**
   * One worker at a time: between an offer and the run that follows from it nobody else may offer the same slot. Workers of several
   * pools that want the same slots are served in rotation. Without lanes the pools share no slots, and nobody waits.
   */
  claimExclusively(worker: object, claim: () => Promise<boolean>): Promise<boolean> {
    return this.#options.hasLanes ? this.#claimLock.run(worker, claim) : claim()
  }

  /** How long until the first paused engine may take work again; null: no engine is paused. */
  nextRoomMs(): number | null {
    const pauses = this.#members.map((member) => member.pausedMs()).filter((ms) => ms > 0)
    return pauses.length === 0 ? null : Math.min(...pauses)
  }

  /** Engines on which runs that were left can be taken on by this process. */
  adoptable(): readonly string[] {
    return this.#members.filter(({ canAdopt }) => canAdopt).map(({ id }) => id)
  }

  /** Occupies a slot of an engine that was offered. */
  take(engineId: string, job: PlacedJob): EngineSlot {
    return createSlot(this.#find(engineId), this.#lanes.needsOf(job.lane)?.weights ?? [], this.#slotDeps(engineId, job))
  }

  #slotDeps(engineId: string, { lane, jobId }: PlacedJob) {
    const { clock } = this.#options
    const takenAtMs = clock.now().getTime()
    return {
      ...{ lane, jobId, judge: this.#judge, log: this.#options.log },
      hasOther: () => this.hasOther(new Set([engineId]), lane),
      onComputed: () => this.#lanes.noteRun(lane, Math.max(0, clock.now().getTime() - takenAtMs)),
      onFreed: () => this.#changed(),
    }
  }

  #rest(engineId: string, reason: string, jobId: string): void {
    this.#options.log.error({ engine: engineId, reason, jobId }, 'an engine is rested')
    this.#find(engineId).quarantine(reason, jobId)
    this.#changed()
  }

  /** A job ended while it waited: no engine rests for it any longer. */
  forget(jobId: string): void {
    if (this.#judge.forget(jobId)) this.#changed()
  }

  /** The engine that is in this process, as far as claims depend on it; null: there is none that may be given work. */
  resident(): ResidentRoom | null {
    const member = this.#members.find(({ engine }) => engine.isResident)
    if (member === undefined || !member.isAvailable()) return null
    const { hasLanes } = this.#options
    return {
      engineId: member.id,
      hasRoom: !hasLanes || member.hasRoom(),
      lanes: hasLanes ? servedLanes(member, this.#lanes) : null,
    }
  }

  /** What another process must know of an engine that it is asked to find work for. */
  describe(engineId: string): Pick<DistantEngine, 'loadedWeights' | 'brokeLatestRun'> {
    const member = this.#find(engineId)
    return { loadedWeights: member.loaded.names(), brokeLatestRun: member.brokeLatestRun }
  }

  /** Whether an engine that is none of these is ready and can run jobs of the lane, be it free now or later. */
  hasOther(except: ReadonlySet<string>, lane: string, states: readonly EngineState[] = ['ready']): boolean {
    const serves = (engine: { catalog(): NodeCatalog | null }) =>
      !this.#options.hasLanes || servedLanes(engine, this.#lanes).includes(lane)
    // Engines of a copy stand in for each other alone.
    const pool = this.#members.find(({ id }) => except.has(id))?.pool ?? null
    const beside = this.#members.filter((member) => member.pool === pool && !except.has(member.id))
    return (
      beside.some((member) => states.includes(member.state()) && serves(member)) ||
      this.#others().some(
        ({ status, catalog }) =>
          !except.has(status.id) && states.includes(status.state) && serves({ catalog: () => catalog }),
      ) ||
      this.#options.isServedElsewhere?.(lane) === true
    )
  }

  #hasTrusted(except: ReadonlySet<string>, lane: string): boolean {
    const doubted = this.#members.filter((member) => member.brokeLatestRun).map(({ id }) => id)
    const onTrial = this.#others().filter(({ status }) => status.reason !== null)
    return this.hasOther(new Set([...except, ...doubted, ...onTrial.map(({ status }) => status.id)]), lane)
  }

  /** Whether a job of this lane would be taken at once, or as soon as a run that is over has given back its slot; null: neither. */
  roomFor(lane: string, pool: string): 'free' | 'coming' | null {
    const serving = this.#members.filter(
      (member) => mayRun(member.pool, pool) && member.hasRoomSoon() && servedLanes(member, this.#lanes).includes(lane),
    )
    if (serving.length === 0) return null
    return serving.some((member) => member.hasRoom()) ? 'free' : 'coming'
  }

  /** No engine here is given work as long as there is a reason; null: there is none any more. */
  hold(reason: string | null): void {
    this.#held = reason
    this.#changed()
  }

  cordon(engineId: string): EngineStatus {
    return this.#command(engineId, (member) => member.cordon())
  }

  drain(engineId: string): EngineStatus {
    return this.#command(engineId, (member) => member.drain())
  }

  resume(engineId: string): EngineStatus {
    return this.#command(engineId, (member) => member.resume())
  }

  /** Throws `not_found`. */
  find(engineId: string): EngineStatus {
    return this.#find(engineId).status()
  }

  status(): EngineStatus[] {
    return this.#members.map((member) => member.status())
  }

  /** What other processes are told of the engines here, if this one drives them. */
  publishable(): PublishableEngine[] {
    return this.#members.map((member) => ({
      isShared: member.isShared,
      info: member.engine.objectInfo(),
      own: member.engine.isResident ? member.catalog() : null,
      weights: member.engine.weightFiles?.() ?? null,
      status: { ...member.status(), state: member.ownState() },
      takeOver: async () => member.engine.takeOver?.(),
    }))
  }

  /** Asks the engines that answer what they can run. Asked again meanwhile, it asks them no second time. */
  refreshLists(): Promise<void> {
    this.#refreshing ??= Promise.all(
      this.#members
        .filter(({ engine }) => engine.health().state === 'ready')
        .map(({ engine, id }) => {
          const asked = engine.refreshList?.().catch((error: unknown) => {
            this.#options.log.debug({ err: error, engine: id }, 'an engine could not be asked what it can run')
          })
          return asked && settlesWithin(asked, this.#options.refreshWithinMs ?? REFRESH_WITHIN_MS)
        }),
    ).then(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  /** Something outside of the engines has changed, such as the lanes: whoever claims looks again. */
  announce(): void {
    this.#changed()
  }

  /** Called after anything that may free a slot or take one. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#subscriptions.values()) end()
    this.#closing.abort()
    await Promise.all(this.#warming)
    await Promise.all(this.#recycling)
    await Promise.all(this.#members.map(({ engine }) => engine[Symbol.asyncDispose]()))
  }

  #command(engineId: string, act: (member: FleetMember) => void): EngineStatus {
    const member = this.#find(engineId)
    act(member)
    this.#changed()
    return member.status()
  }

  #find(engineId: string): FleetMember {
    const member = this.#members.find(({ id }) => id === engineId) ?? this.#leaving.get(engineId)
    if (member === undefined) throw new ServiceError('not_found', 'there is no engine with this id')
    return member
  }

  #observe(member: FleetMember): void {
    member.observe()
    this.#warmWhenDue(member)
    this.#changed()
  }

  /** Looks which engines lack what they are to have loaded. */
  warmCold(): void {
    for (const member of this.#members) this.#observe(member)
  }

  #warmWhenDue(member: FleetMember): void {
    const plan = member.beginWarming()
    if (plan === null) return
    const warmed = this.#warm(member, plan).finally(() => this.#warming.delete(warmed))
    this.#warming.add(warmed)
  }

  async #warm(member: FleetMember, plan: WarmPlan): Promise<void> {
    const { clock, log } = this.#options
    const of = { incarnation: member.incarnation, number: plan.number }
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(WARM_WITHIN_MS)])
    const beganMs = clock.now().getTime()
    try {
      const catalog = member.catalog()
      const graphs = catalog === null ? [] : toWarmGraphs(plan, catalog)
      for (const graph of graphs) await warmUp(member.engine, graph, signal)
      const weights = catalog === null ? [] : graphs.flatMap((graph) => needsOf(graph, [catalog]).weights)
      member.warmed([...new Set(weights)], of)
      log.info({ engine: member.id, tookMs: clock.now().getTime() - beganMs }, 'an engine is warm')
    } catch (error) {
      member.stayedCold(`it could not be warmed: ${error instanceof Error ? error.message : String(error)}`, of)
      if (!this.#closing.signal.aborted) log.warn({ err: error, engine: member.id }, 'an engine could not be warmed')
    }
    this.#changed()
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Between jobs only: an engine whose process is due for replacement gets no more work until its last run has ended. */
  #recycleWhenDue(member: FleetMember): void {
    const reason = member.isUnused && member.state() === 'ready' ? member.recycleReason() : null
    if (reason === null) return
    this.#options.log.info({ engine: member.id, reason }, 'an engine is replaced by a fresh one')
    const recycled = this.#recycle(member, reason).finally(() => this.#recycling.delete(recycled))
    this.#recycling.add(recycled)
  }

  async #recycle(member: FleetMember, reason: string): Promise<void> {
    const recycled = member
      .recycle(reason)
      .catch((error) => this.#options.log.error({ err: error, engine: member.id }, 'an engine could not be restarted'))
    await settlesWithin(recycled, RECYCLE_WITHIN_MS)
    this.#changed()
  }
}
