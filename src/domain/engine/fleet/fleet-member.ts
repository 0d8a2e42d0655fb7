/**
 * One engine in a fleet: whether it may be given work, what it has loaded, how its runs went. The engine says whether it is
 * reachable; beyond that, the operator, its lost runs and its quarantines decide. It never runs anything by itself.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { type Backoff, createBackoff } from '../../../../lib/waiting/backoff.ts'
import type { EngineCounts, EngineState, EngineStatus } from './engine-status.ts'
import { installedWeights, LoadedWeights } from './engine-weights.ts'
import type { EngineTrouble, FleetEngine } from './fleet-engine.ts'

/** When an engine whose process is ours is replaced by a fresh one, between jobs. null: never for this reason. */
export interface RecycleLimits {
  readonly maxJobs: number | null
  readonly maxMemoryBytes: number | null
  readonly maxAgeMs: number | null
}

interface MemberOptions {
  readonly clock: Clock
  /** What it could run when it was last seen, for the time until it is seen again. */
  readonly remembered: ObjectInfo | null
  readonly recycleLimits: RecycleLimits
  /** The first pause after it broke off a run; it doubles while that goes on. */
  readonly retryMs: number
  /** The first time in quarantine; it doubles with every further one. */
  readonly quarantineMs: number
}

const MAX_RETRY_MS = 30_000
const MAX_QUARANTINE_MS = 1_800_000

interface Quarantine {
  readonly reason: string
  readonly until: number
}

export class FleetMember {
  readonly engine: FleetEngine
  readonly loaded: LoadedWeights
  readonly #options: MemberOptions
  readonly #retryBackoff: Backoff
  readonly #quarantineBackoff: Backoff
  #operatorState: 'open' | 'cordoned' | 'draining' = 'open'
  #quarantine: Quarantine | null = null
  #pausedUntil = 0
  #brokeLatestRun = false
  #running = 0
  #recycling: string | null = null
  #incarnation: number
  #jobsOfProcess = 0
  #info: ObjectInfo | null
  #catalog: NodeCatalog | null = null
  #weights: number | null = null
  #lastError: EngineTrouble | null = null
  #counts: EngineCounts = { jobs: 0, failures: 0, losses: 0, switches: 0, recycles: 0 }

  constructor(engine: FleetEngine, options: MemberOptions) {
    this.engine = engine
    this.loaded = new LoadedWeights(engine.concurrency)
    this.#options = options
    this.#retryBackoff = createBackoff({ firstMs: options.retryMs, maxMs: MAX_RETRY_MS })
    this.#quarantineBackoff = createBackoff({
      firstMs: options.quarantineMs,
      maxMs: MAX_QUARANTINE_MS,
      random: () => 1,
    })
    this.#incarnation = engine.health().incarnation
    this.#info = engine.objectInfo() ?? options.remembered
  }

  get id(): string {
    return this.engine.id
  }

  get running(): number {
    return this.#running
  }

  /** It broke off its latest run: jobs go to another engine first, where there is one. */
  get brokeLatestRun(): boolean {
    return this.#brokeLatestRun
  }

  /** Counts the processes that were seen behind it. */
  get incarnation(): number {
    return this.#incarnation
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
    this.#quarantine = null
    this.#recycling = null
    this.#pausedUntil = 0
  }

  state(): EngineState {
    const { state, unfit } = this.engine.health()
    if (this.#isQuarantined()) return 'quarantined'
    if (state !== 'ready') return state
    if (unfit !== null) return 'quarantined'
    if (this.#recycling !== null) return 'starting'
    if (this.#operatorState === 'draining') return this.#running > 0 ? 'draining' : 'cordoned'
    return this.#operatorState === 'cordoned' ? 'cordoned' : 'ready'
  }

  /** Whether it may be given one more run now. */
  hasRoom(): boolean {
    return this.#running < this.engine.concurrency && this.isAvailable()
  }

  /** The same without regard to how many runs it has. */
  isAvailable(): boolean {
    return this.state() === 'ready' && this.pausedMs() === 0
  }

  /** How long it gets no work, after it broke off a run or because it is in quarantine; 0: it may have some now. */
  pausedMs(): number {
    const until = Math.max(this.#pausedUntil, this.#quarantine?.until ?? 0)
    return Math.max(0, until - this.#options.clock.now().getTime())
  }

  #isQuarantined(): boolean {
    return this.#quarantine !== null && this.#quarantine.until > this.#options.clock.now().getTime()
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
    this.#quarantine = null
    this.#brokeLatestRun = false
    this.#pausedUntil = 0
    this.#quarantineBackoff.reset()
    this.#retryBackoff.reset()
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

  /** Frees the slot. `isGood`: the engine did its part, however the job ended. */
  end({ isGood }: { readonly isGood: boolean }): void {
    this.#running -= 1
    if (!isGood) return
    this.#brokeLatestRun = false
    this.#retryBackoff.reset()
  }

  countFailure(): void {
    this.#count('failures')
  }

  /** A run that began on the process `incarnation` was lost. Only a loss of the present process pauses the engine. */
  lose(message: string, incarnation: number): void {
    this.#count('losses')
    this.#note(message)
    // Also when the new process was noticed before the loss: the job goes to another engine where there is one.
    this.#brokeLatestRun = true
    if (incarnation !== this.#incarnation) return
    this.#pausedUntil = this.#options.clock.now().getTime() + this.#retryBackoff.nextMs()
  }

  quarantine(reason: string): void {
    this.#note(reason)
    this.#quarantine = { reason, until: this.#options.clock.now().getTime() + this.#quarantineBackoff.nextMs() }
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
      reconnects,
      memoryBytes,
      startedAt,
      lastError: newest(lastError, this.#lastError),
      counts: this.#counts,
    }
  }

  #reason(): string | null {
    if (this.#isQuarantined()) return this.#quarantine!.reason
    const { state, unfit } = this.engine.health()
    if (state === 'ready' && unfit !== null) return unfit
    return this.#recycling ?? (this.#operatorState === 'draining' ? 'drained' : null)
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
