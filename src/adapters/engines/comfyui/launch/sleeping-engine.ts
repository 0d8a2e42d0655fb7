/**
 * A ComfyUI process that is there only while it is wanted. What it can run stays known while it sleeps, so that jobs are accepted and
 * wait for it. To a fleet it is one engine all the time; each process behind it counts as another incarnation.
 */
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../../engine/graph/object-info.ts'
import type { EngineEvent } from '../../../../../engine/graph/run-event.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { EngineRun, RunOptions } from '../../../../domain/engine/engine-port.ts'
import type {
  EngineDevice,
  EngineHealth,
  EngineLog,
  FleetEngine,
} from '../../../../domain/engine/fleet/fleet-engine.ts'
import type { WeightFile } from '../../../../domain/engine/weights/weight-files.ts'
import type { ComfyEngineOptions } from '../comfy-bounds.ts'
import { type ComfyEngine, openComfyEngine } from '../comfy-engine.ts'

interface SleepingOptions extends Omit<ComfyEngineOptions, 'onEnd' | 'id'> {
  readonly id: string
  /** The copy whose jobs alone it runs. */
  readonly pool: string
}

/** How it goes with a process that was wanted. */
interface Waking {
  readonly isUp: boolean
  readonly isReady: boolean
  /** How often a process ended since it was woken, without having been ready in between. */
  readonly failures: number
  readonly lastFailure: string | null
}

const ASLEEP: EngineHealth = {
  state: 'starting',
  incarnation: 0,
  lastError: null,
  unfit: null,
  version: null,
  reconnects: 0,
  memoryBytes: null,
  startedAt: null,
}
// Enough for the line that names the cause.
const TOLD_LENGTH = 600

export class SleepingEngine implements FleetEngine {
  readonly id: string
  readonly pool: string
  readonly concurrency: number
  readonly #options: SleepingOptions
  readonly #listeners = new Set<() => void>()
  #engine: ComfyEngine | null = null
  /** Starts and ends come one after the other. */
  #turn: Promise<void> = Promise.resolve()
  #info: ObjectInfo | null = null
  #catalog: NodeCatalog | null = null
  #weights: readonly WeightFile[] | null = null
  #log: EngineLog | undefined
  #incarnations = 0
  #failures = 0
  #lastFailure: string | null = null
  #isClosed = false

  constructor(options: SleepingOptions) {
    this.#options = options
    this.id = options.id
    this.pool = options.pool
    this.concurrency = options.concurrency ?? 1
  }

  /** Harmless when it is up. */
  wake(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#engine !== null || this.#isClosed) return
      this.#failures = 0
      this.#lastFailure = null
      const engine = await openComfyEngine({
        ...this.#options,
        onEnd: (reason, lastLines) => {
          this.#failures++
          this.#lastFailure = [reason, ...lastLines.slice(-3)].join('; ').slice(0, TOLD_LENGTH)
          this.#tell()
        },
      })
      this.#engine = engine
      this.#log = engine.log
      engine.onChange(() => this.#observe(engine))
      this.#tell()
    })
  }

  /** Harmless when it sleeps. Whoever calls this has seen that no run needs it. */
  sleep(): Promise<void> {
    return this.#inTurn(async () => {
      const engine = this.#engine
      if (engine === null) return
      this.#engine = null
      this.#incarnations += Math.max(1, engine.health().incarnation)
      this.#tell()
      await engine[Symbol.asyncDispose]()
      this.#tell()
    })
  }

  waking(): Waking {
    const isReady = this.#engine?.health().state === 'ready' && this.#info !== null
    return { isUp: this.#engine !== null, isReady, failures: this.#failures, lastFailure: this.#lastFailure }
  }

  get log(): EngineLog | undefined {
    return this.#log
  }

  health(): EngineHealth {
    const health = this.#engine?.health() ?? ASLEEP
    return { ...health, incarnation: this.#incarnations + health.incarnation }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  objectInfo(): ObjectInfo | null {
    return this.#info
  }

  device(): EngineDevice | null {
    return this.#engine?.device?.() ?? null
  }

  catalog(): NodeCatalog {
    this.#catalog ??= this.#engine?.catalog() ?? catalogOf(this.#info ?? {})
    return this.#catalog
  }

  weightFiles(): readonly WeightFile[] | null {
    return this.#weights
  }

  async refreshList(): Promise<void> {
    await this.#engine?.refreshList?.()
  }

  async *run(engineRun: EngineRun, options: RunOptions): AsyncGenerator<EngineEvent> {
    const engine = this.#engine
    if (engine === null) throw new EngineLostError('engine_unreachable', 'the engine sleeps')
    yield* engine.run(engineRun, options)
  }

  async free(options: { readonly signal: AbortSignal }): Promise<void> {
    await this.#engine?.free?.(options)
  }

  async recycle(reason: string): Promise<void> {
    await this.#engine?.recycle?.(reason)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.sleep()
  }

  #observe(engine: ComfyEngine): void {
    if (this.#engine !== engine) return
    if (engine.health().state === 'ready') this.#failures = 0
    const info = engine.objectInfo()
    if (info !== null && info !== this.#info) {
      this.#info = info
      this.#catalog = null
    }
    this.#weights = engine.weightFiles?.() ?? this.#weights
    this.#tell()
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(act)
    this.#turn = done.catch(() => {})
    return done
  }
}
