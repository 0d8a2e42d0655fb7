/**
 * One engine in a fleet: whether it may be given work, what it has loaded, how its runs went. The engine says whether it is
 * reachable; beyond that, the operator, its lost runs and its quarantines decide. It never runs anything by itself.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { WarmPlan } from '../warm/warm-plan.ts'
import { installedWeights, LoadedWeights, type WeightFile, weightFilesOf } from '../weights/weight-files.ts'
import type { EngineCounts, EngineState, EngineStatus } from './engine-status.ts'
import { EngineSuspension, type SuspensionOptions } from './engine-suspension.ts'
import type { EngineTrouble, FleetEngine } from './fleet-engine.ts'
import { type ObservedFacts, type ObservedRelease, observeRelease } from './observed-release.ts'

/** When an engine whose process is ours is replaced by a fresh one, between jobs. null: never for this reason. */
export interface RecycleLimits {
  readonly maxJobs: number | null
  readonly maxMemoryBytes: number | null
  readonly maxAgeMs: number | null
}

/** What an engine could run when it was last seen, and the weights that it listed. */
export interface RememberedEngine {
  readonly info: ObjectInfo
  readonly weights: readonly WeightFile[] | null
}

interface MemberOptions extends SuspensionOptions {
  /** For the time until it is seen again. */
  readonly remembered: RememberedEngine | null
  readonly recycleLimits: RecycleLimits
  /** Whether this process may give it work. */
  readonly isDriven: () => boolean
  /** What has to be loaded before it counts as ready; null: nothing. */
  readonly warmPlan: () => WarmPlan | null
  /** Why no engine of this process may have any; null: they may. */
  readonly heldReason: () => string | null
}

const WARM_TRIES = 2

export class FleetMember {
  readonly engine: FleetEngine
  readonly loaded: LoadedWeights
  readonly #options: MemberOptions
  readonly suspension: EngineSuspension
  #operatorState: 'open' | 'cordoned' | 'draining' = 'open'
  #running = 0
  /** Runs that it has computed, and whose files are still read from it. */
  #leaving = 0
  /** Of those that run: it is done with them, and their slots are about to be free. */
  #ending = 0
  #recycling: string | null = null
  /** The process and the plan for which it was warmed, or was given up on. */
  #warmedFor = ''
  #isWarming = false
  #warmFailures = 0
  #incarnation: number
  #jobsOfProcess = 0
  #info: ObjectInfo | null
  #catalog: NodeCatalog | null = null
  #weights: number | null = null
  #observed: (Pick<ObservedFacts, 'info' | 'weights' | 'comfyui'> & { readonly release: ObservedRelease }) | null = null
  #lastError: EngineTrouble | null = null
  #counts: EngineCounts = { jobs: 0, failures: 0, losses: 0, switches: 0, recycles: 0 }

  constructor(engine: FleetEngine, options: MemberOptions) {
    this.engine = engine
    this.loaded = new LoadedWeights(engine.concurrency)
    this.#options = options
    this.suspension = new EngineSuspension(options)
    this.#incarnation = engine.health().incarnation
    this.#info = engine.objectInfo() ?? options.remembered?.info ?? null
  }

  get id(): string {
    return this.engine.id
  }

  /** Of the copy whose jobs alone it runs; null: it is no copy's. */
  get pool(): string | null {
    return this.engine.pool ?? null
  }

  get running(): number {
    return this.#running
  }

  /** No run needs it, not even its files. */
  get isUnused(): boolean {
    return this.#running + this.#leaving === 0
  }

  /** It broke off its latest run: jobs go to another engine first, where there is one. */
  get brokeLatestRun(): boolean {
    return this.suspension.brokeLatestRun
  }

  /** Counts the processes that were seen behind it. */
  get incarnation(): number {
    return this.#incarnation
  }

  /** It does not belong to this process, so that another one may drive it. */
  get isShared(): boolean {
    return !this.engine.isResident && !this.isSupervised
  }

  get isSupervised(): boolean {
    return this.engine.recycle !== undefined
  }

  /** null: it has never been reached, neither by us nor by a process before. */
  catalog(): NodeCatalog | null {
    if (this.#catalog === null && this.#info !== null) {
      this.#catalog = this.engine.objectInfo() === this.#info ? this.engine.catalog() : catalogOf(this.#info)
    }
    return this.#catalog
  }

  /** The files of weights that it has, as far as it or its loaders tell. */
  weightFiles(): readonly WeightFile[] {
    return weightFilesOf(this.catalog(), this.engine.weightFiles?.() ?? this.#options.remembered?.weights ?? null)
  }

  /** Takes over what the engine says now. True when what it can run has changed. */
  observe(): boolean {
    const { incarnation } = this.engine.health()
    if (incarnation !== this.#incarnation) this.#startAnew(incarnation)
    const info = this.engine.objectInfo()
    if (info === null || info === this.#info) return false
    this.#info = info
    this.#catalog = null
    this.#weights = null
    return true
  }

  #startAnew(incarnation: number): void {
    this.#incarnation = incarnation
    this.#jobsOfProcess = 0
    this.loaded.clear()
    this.suspension.startAnew()
    this.#recycling = null
  }

  state(): EngineState {
    return this.#options.isDriven() ? this.ownState() : 'standby'
  }

  /** Its state for whoever drives it. */
  ownState(): EngineState {
    const { state, unfit } = this.engine.health()
    if (this.suspension.quarantineReason() !== null) return 'quarantined'
    if (state !== 'ready') return state
    if (unfit !== null || this.#options.heldReason() !== null) return 'quarantined'
    if (this.#recycling !== null) return 'starting'
    if (this.#operatorState === 'draining') return this.isUnused ? 'cordoned' : 'draining'
    if (this.#operatorState === 'cordoned') return 'cordoned'
    return this.#isCold() ? 'starting' : 'ready'
  }

  #warmKey(): string | null {
    const plan = this.#options.warmPlan()
    return plan === null ? null : `${this.#incarnation} ${plan.number}`
  }

  #isCold(): boolean {
    const key = this.#warmKey()
    return key !== null && key !== this.#warmedFor
  }

  /** What to load now; null: nothing, or it is not the time. The caller says `warmed` or `stayedCold` then. */
  beginWarming(): WarmPlan | null {
    const { state, unfit, awaited = 0 } = this.engine.health()
    const isThere = state === 'ready' && unfit === null && this.#options.isDriven() && this.pausedMs() === 0
    if (!isThere || this.#isWarming || !this.#isCold() || !this.isUnused || awaited > 0) return null
    if (this.#recycling !== null || this.#options.heldReason() !== null) return null
    // Whoever took it out of service may want its memory for something else.
    if (this.#operatorState !== 'open') return null
    this.#isWarming = true
    return this.#options.warmPlan()
  }

  /** `incarnation`: of the process that was warmed; `number`: of the plan. */
  warmed(weights: readonly string[], { incarnation, number }: { incarnation: number; number: number }): void {
    this.#isWarming = false
    this.#warmFailures = 0
    this.#warmedFor = `${incarnation} ${number}`
    if (incarnation === this.#incarnation && weights.length > 0) this.loaded.load(weights)
  }

  /** It is tried once more; after that the server works without. */
  stayedCold(message: string, of: { incarnation: number; number: number }): void {
    this.#isWarming = false
    this.#warmFailures += 1
    this.#note(message)
    if (this.#warmFailures < WARM_TRIES) return
    this.#warmFailures = 0
    this.#warmedFor = `${of.incarnation} ${of.number}`
  }

  /** Whether it may be given one more run now. */
  hasRoom(): boolean {
    return this.#hasRoomBeside(this.#running)
  }

  #hasRoomBeside(taken: number): boolean {
    const { awaited = 0 } = this.engine.health()
    return taken + awaited < (this.isOnTrial ? 1 : this.engine.concurrency) && this.isAvailable()
  }

  /** It was in quarantine and has not succeeded since. */
  get isOnTrial(): boolean {
    return this.suspension.trialReason() !== null
  }

  /** The same for a moment later, when the runs that it is done with have given back their slots. */
  hasRoomSoon(): boolean {
    return this.#hasRoomBeside(this.#running - this.#ending)
  }

  /** It is done with a run that still has its slot. */
  leave(): void {
    this.#ending += 1
  }

  /** The slot of that run is given back now. */
  stay(): void {
    this.#ending -= 1
  }

  /** The same without regard to how many runs it has. */
  isAvailable(): boolean {
    return this.state() === 'ready' && this.pausedMs() === 0
  }

  /** Whether runs on it that were left can be taken on here: they are followed, or given up where nobody is there any more. */
  get canAdopt(): boolean {
    const { state, isGone = false } = this.engine.health()
    return this.engine.keepsRuns === true && this.#options.isDriven() && (state === 'ready' || isGone)
  }

  /** How long it gets no work, after it broke off a run or because it is in quarantine; 0: it may have some now. */
  pausedMs(): number {
    return this.suspension.pausedMs()
  }

  cordon(): void {
    this.#operatorState = 'cordoned'
  }

  drain(): void {
    this.#operatorState = 'draining'
  }

  /** Takes work again, whatever the reason why it was given none. */
  resume(): void {
    this.#operatorState = 'open'
    this.suspension.lift()
  }

  begin(weights: readonly string[]): void {
    this.#running += 1
    this.#jobsOfProcess += 1
    if (weights.length > 0) {
      if (!this.loaded.hasAll(weights)) this.#count('switches')
      this.loaded.load(weights)
    }
    this.#count('jobs')
  }

  /** Frees the slot of a run that is computed; its end follows. */
  vacate(): void {
    this.#running -= 1
    this.#leaving += 1
  }

  /** Frees the slot, unless that is `isVacated`. `isGood`: the engine did its part, however the job ended. */
  end({ isGood, isVacated, hasSucceeded }: Record<'isGood' | 'isVacated' | 'hasSucceeded', boolean>): void {
    if (isVacated) this.#leaving -= 1
    else this.#running -= 1
    if (isGood) this.suspension.noteGoodRun()
    if (hasSucceeded) this.suspension.noteSuccess()
  }

  countFailure(): void {
    this.#count('failures')
  }

  /** A run that began on the process `incarnation` was lost. Only a loss of the present process pauses the engine. */
  lose(message: string, incarnation: number): void {
    this.#count('losses')
    this.#note(message)
    this.suspension.noteLoss({ isPast: incarnation !== this.#incarnation })
  }

  /** `jobId`: the run of that job is the reason, and its end elsewhere may show that it was wrong. */
  quarantine(reason: string, jobId: string | null = null): void {
    this.#note(reason)
    this.suspension.quarantine(reason, jobId)
  }

  /** It gets no work for a moment, and others come first. */
  pause(reason: string): void {
    this.#note(reason)
    this.suspension.noteFault()
  }

  /** The same while another engine is asked for a second opinion on this job. */
  doubt(reason: string, jobId: string): void {
    this.#note(reason)
    this.suspension.noteDoubt(jobId)
  }

  /** Why its process should be replaced before the next job, or null. */
  recycleReason(): string | null {
    if (!this.isSupervised || this.#recycling !== null) return null
    const { maxJobs, maxMemoryBytes, maxAgeMs } = this.#options.recycleLimits
    const { memoryBytes, startedAt } = this.engine.health()
    if (maxJobs !== null && this.#jobsOfProcess >= maxJobs) return `it has run ${this.#jobsOfProcess} jobs`
    if (maxMemoryBytes !== null && memoryBytes !== null && memoryBytes > maxMemoryBytes) {
      return `it occupies ${Math.round(memoryBytes / 2 ** 20)} MiB`
    }
    const ageMs = startedAt === null ? 0 : this.#options.clock.now().getTime() - startedAt.getTime()
    if (maxAgeMs !== null && ageMs > maxAgeMs) return `it has run for ${Math.round(ageMs / 1000)} s`
    return null
  }

  /** Replaces its process by a fresh one. It gets no work until the new one is seen. */
  async recycle(reason: string): Promise<void> {
    this.#recycling = reason
    this.#count('recycles')
    try {
      await this.engine.recycle?.(reason)
    } catch (error) {
      this.#recycling = null
      this.quarantine(`it could not be restarted (${error instanceof Error ? error.message : String(error)})`)
      throw error
    }
  }

  status(): EngineStatus {
    const { version, reconnects, memoryBytes, startedAt, lastError } = this.engine.health()
    return {
      id: this.id,
      state: this.state(),
      reason: this.#reason(),
      isSupervised: this.isSupervised,
      concurrency: this.engine.concurrency,
      running: this.#running,
      nodeClasses: this.catalog()?.classTypes().length ?? 0,
      weights: this.#countWeights(),
      loadedWeights: this.loaded.names(),
      version,
      observed: this.#observeRelease(version),
      reconnects,
      memoryBytes,
      startedAt,
      lastError: newest(lastError, this.#lastError),
      counts: this.#counts,
    }
  }

  /** Worked out anew only when the engine has told something else. */
  #observeRelease(comfyui: string | null): ObservedRelease | null {
    const { engine } = this
    const runtime = engine.runtime?.() ?? null
    if (runtime === null || this.pool !== null || this.#info === null) return null
    const facts = { comfyui, ...runtime, info: this.#info, weights: engine.weightFiles?.() ?? null }
    const { info, weights } = facts
    const last = this.#observed
    const isSame = last !== null && last.info === info && last.weights === weights && last.comfyui === comfyui
    if (!isSame) this.#observed = { info, weights, comfyui, release: observeRelease(facts) }
    return this.#observed?.release ?? null
  }

  #reason(): string | null {
    const quarantine = this.suspension.quarantineReason()
    if (quarantine !== null) return quarantine
    const { state, unfit } = this.engine.health()
    if (state === 'ready' && unfit !== null) return unfit
    const held = this.#options.heldReason()
    if (state === 'ready' && held !== null) return held
    const trial = this.suspension.trialReason()
    const tried = trial === null ? null : `it is tried with one job at a time: ${trial}`
    if (state === 'ready' && this.#recycling === null && this.#operatorState === 'open' && this.#isCold())
      return 'it loads what it is to have before its first job'
    return this.#recycling ?? (this.#operatorState === 'draining' ? 'drained' : tried)
  }

  #countWeights(): number {
    this.#weights ??= installedWeights(this.catalog()).size
    return this.#weights
  }

  #count(what: keyof EngineCounts): void {
    this.#counts = { ...this.#counts, [what]: this.#counts[what] + 1 }
  }

  #note(message: string): void {
    this.#lastError = { message, at: this.#options.clock.now() }
  }
}

function newest(one: EngineTrouble | null, other: EngineTrouble | null): EngineTrouble | null {
  if (one === null || other === null) return one ?? other
  return one.at >= other.at ? one : other
}
