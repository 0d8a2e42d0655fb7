/**
 * Several engines as one. Knows what they can run together, where a graph could run, and which engine has a free slot for which
 * lane of the queue; hands out slots and takes them back with a report of the run. Which job is next is the store's decision;
 * running it is the worker's, and reaching an engine the adapter's.
 */

import type { Graph } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import { ServiceError } from '../../errors.ts'
import { findLacks, type Lack, meets, needsOf } from '../../workflows/needs.ts'
import { uniteCatalogs } from '../../workflows/union-catalog.ts'
import { createSlot, type EngineSlot } from './engine-slot.ts'
import type { EngineStatus } from './engine-status.ts'
import { type Availability, findAvailability } from './engine-weights.ts'
import { createFairLock } from './fair-lock.ts'
import type { FleetEngine } from './fleet-engine.ts'
import { FleetMember, type RecycleLimits } from './fleet-member.ts'
import { type EngineOffer, offerLanes, servedLanes } from './lane-offers.ts'
import { ANY_LANE, createLaneTable, NO_LANE } from './lane-table.ts'

export interface FleetOptions {
  readonly clock: Clock
  readonly log: Log
  /** false: every engine runs everything, so jobs have no lanes and are claimed in plain order. */
  readonly hasLanes: boolean
  readonly recycleLimits?: RecycleLimits
  readonly retryMs?: number
  readonly quarantineMs?: number
  /** What each engine could run when a process before us last saw it. */
  readonly remembered?: ReadonlyMap<string, ObjectInfo>
  /** Called with what an engine can run whenever that has changed. */
  readonly remember?: (engineId: string, info: ObjectInfo) => void
}

export const NEVER_RECYCLE: RecycleLimits = { maxJobs: null, maxMemoryBytes: null, maxAgeMs: null }
const RECYCLE_WITHIN_MS = 30_000

export type Fleet = EngineFleet

export function createFleet(engines: readonly FleetEngine[], options: FleetOptions): Fleet {
  return new EngineFleet(engines, options)
}

class EngineFleet implements AsyncDisposable {
  readonly #options: FleetOptions
  readonly #members: readonly FleetMember[]
  readonly #lanes = createLaneTable()
  readonly #listeners = new Set<() => void>()
  readonly #subscriptions: (() => void)[]
  readonly #recycling = new Set<Promise<void>>()
  readonly #claimLock = createFairLock()
  #union: NodeCatalog | null = null

  constructor(engines: readonly FleetEngine[], options: FleetOptions) {
    this.#options = options
    const { clock, recycleLimits = NEVER_RECYCLE, retryMs = 1000, quarantineMs = 60_000, remembered } = options
    this.#members = engines.map(
      (engine) =>
        new FleetMember(engine, {
          clock,
          recycleLimits,
          retryMs,
          quarantineMs,
          remembered: remembered?.get(engine.id) ?? null,
        }),
    )
    this.#subscriptions = this.#members.map((member) => member.engine.onChange(() => this.#observe(member)))
    for (const member of this.#members) this.#observe(member)
  }

  /** How many runs all engines together take. */
  get concurrency(): number {
    return this.#members.reduce((sum, { engine }) => sum + engine.concurrency, 0)
  }

  get hasLanes(): boolean {
    return this.#options.hasLanes
  }

  /** What the engines can run together, those that are away just now included. */
  catalog(): NodeCatalog {
    for (const member of this.#members) this.#update(member)
    this.#union ??= uniteCatalogs(this.#knownCatalogs())
    return this.#union
  }

  /** Some engine has never been reached: what it can run is unknown, so no graph can be ruled out. */
  isCatalogOpen(): boolean {
    return this.#members.some((member) => member.catalog() === null)
  }

  /** The lane of a graph's jobs. */
  laneOf(graph: Graph): string {
    if (!this.#options.hasLanes) return NO_LANE
    const needs = needsOf(graph, this.#knownCatalogs())
    this.#lanes.learn(needs.key, needs)
    return needs.key
  }

  /** Learns a lane from one of its jobs, found in the store. */
  learnLane(lane: string, graph: Graph): void {
    this.#lanes.learn(lane, { ...needsOf(graph, this.#knownCatalogs()), key: lane })
    this.#changed()
  }

  knownLanes(): readonly string[] {
    return this.#lanes.lanes()
  }

  /** What the engine that comes nearest to running a graph lacks for it; empty when some engine can run it. */
  findLacks(graph: Graph): readonly Lack[] {
    if (!this.#options.hasLanes) return []
    const catalogs = this.#knownCatalogs()
    const needs = needsOf(graph, catalogs)
    if (catalogs.some((catalog) => meets(catalog, needs)) || this.isCatalogOpen()) return []
    const lacks = catalogs.map((catalog) => findLacks(graph, catalog, catalogs))
    return lacks.reduce((least, each) => (each.length < least.length ? each : least), lacks[0] ?? [])
  }

  /** Engines with a free slot, each with the lanes it serves. Those that would have to unload least come first. */
  offers(): EngineOffer[] {
    for (const member of this.#members) {
      this.#update(member)
      this.#recycleWhenDue(member)
    }
    if (!this.#options.hasLanes) {
      // How much runs in this process is bounded by the workers of each pool, not by slots.
      return this.#members.filter((member) => member.isAvailable()).map(({ id }) => ({ engineId: id, lanes: null }))
    }
    const free = this.#members.filter((member) => member.hasRoom() && member.recycleReason() === null)
    return offerLanes(free, { all: this.#members, lanes: this.#lanes })
  }

  /**
   * One claim at a time: between an offer and the run that follows from it nobody else may offer the same slot. Workers of several
   * pools that want the same slots are served in rotation. Without lanes the pools share no slots, and nobody waits.
   */
  claimExclusively(worker: object, claim: () => Promise<boolean>): Promise<boolean> {
    return this.#options.hasLanes ? this.#claimLock.run(worker, claim) : claim()
  }

  /** Lanes that no engine can serve with its present catalog. */
  strandedLanes(): readonly string[] {
    if (!this.#options.hasLanes || this.isCatalogOpen()) return []
    const served = new Set(this.#knownCatalogs().flatMap((catalog) => this.#lanes.servedBy(catalog)))
    return this.#lanes.lanes().filter((lane) => lane !== ANY_LANE && !served.has(lane))
  }

  /** What the nearest engine lacks for the jobs of a lane, in words. */
  explainStranded(lane: string): string {
    const needs = this.#lanes.needsOf(lane)
    if (needs === null) return 'no engine can run this job'
    const catalog = this.catalog()
    const classes = needs.classes.filter((classType) => catalog.find(classType) === null)
    const names =
      classes.length > 0
        ? classes
        : needs.choices.map(([classType, input, value]) => `${classType}.${input} = ${value}`)
    return `no engine has all that this job needs: ${names.slice(0, 20).join(', ')}`
  }

  /** How long until the first paused engine may take work again; null: no engine is paused. */
  nextRoomMs(): number | null {
    const pauses = this.#members.map((member) => member.pausedMs()).filter((ms) => ms > 0)
    return pauses.length === 0 ? null : Math.min(...pauses)
  }

  /** Occupies a slot of an engine that was offered. */
  take(engineId: string, lane: string): EngineSlot {
    const member = this.#find(engineId)
    return createSlot(member, this.#lanes.needsOf(lane)?.weights ?? [], {
      log: this.#options.log,
      onFreed: () => this.#changed(),
    })
  }

  /** Whether an engine other than this one is ready and can run jobs of the lane, be it free now or later. */
  hasOther(engineId: string, lane: string): boolean {
    return this.#members.some(
      (member) =>
        member.id !== engineId &&
        member.state() === 'ready' &&
        (!this.#options.hasLanes || servedLanes(member, this.#lanes).includes(lane)),
    )
  }

  /** Whether a job of this lane would be taken at once. */
  hasRoomFor(lane: string): boolean {
    return this.#members.some((member) => member.hasRoom() && servedLanes(member, this.#lanes).includes(lane))
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

  /** Which engines have a class, and which have a file of weights; those that are away included. */
  availability(): Availability {
    return findAvailability(this.#members)
  }

  status(): EngineStatus[] {
    return this.#members.map((member) => member.status())
  }

  /** Called after anything that may free a slot or take one. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#subscriptions) end()
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
    const member = this.#members.find(({ id }) => id === engineId)
    if (member === undefined) throw new ServiceError('not_found', 'there is no engine with this id')
    return member
  }

  #observe(member: FleetMember): void {
    this.#update(member)
    this.#changed()
  }

  #update(member: FleetMember): void {
    if (!member.observe()) return
    this.#union = null
    const info = member.engine.objectInfo()
    if (info !== null) this.#options.remember?.(member.id, info)
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }

  #knownCatalogs(): readonly NodeCatalog[] {
    return this.#members.map((member) => member.catalog()).filter((catalog) => catalog !== null)
  }

  /** Between jobs only: an engine whose process is due for replacement gets no more work until its last run has ended. */
  #recycleWhenDue(member: FleetMember): void {
    const reason = member.running === 0 && member.state() === 'ready' ? member.recycleReason() : null
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
