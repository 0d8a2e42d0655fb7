/**
 * One ComfyUI server as an engine of a fleet. It opens whether or not the server answers: readiness is a state. Only
 * `/history` and `/queue` decide how a run ends; the socket brings progress, previews and printed lines. A supervised server
 * is one that we start, restart and end; everything else is the same for both kinds.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin, sleep } from '../../../../lib/waiting/sleep.ts'
import { EngineLostError } from '../../../domain/engine/engine-lost-error.ts'
import type { EngineRun, RunOptions } from '../../../domain/engine/engine-port.ts'
import {
  createEngineLog,
  type EngineHealth,
  type EngineLog,
  type FleetEngine,
} from '../../../domain/engine/fleet/fleet-engine.ts'
import type { EngineRuntime } from '../../../domain/engine/fleet/observed-release.ts'
import type { WeightFile } from '../../../domain/engine/weights/weight-files.ts'
import type { WeightStore } from '../../../domain/engine/weights/weight-store.ts'
import { type ComfyBounds, type ComfyEngineOptions, DEFAULT_BOUNDS, type Equip } from './comfy-bounds.ts'
import { createRemover, type Remover } from './files/output-cleanup.ts'
import { Stage } from './files/stage-inputs.ts'
import { Fitness } from './health/fitness.ts'
import { createUnusableWarning, ServerMonitor } from './health/server-monitor.ts'
import { openSupervisor, type Supervisor } from './launch/supervisor.ts'
import { createPromptOwner, createRedact, type PromptOwner, roundOf } from './run/comfy-prompt.ts'
import { type RunDeps, runOnServer } from './run/run-on-server.ts'
import { createForgetter, createStopper, type Forgetter, type Stopper } from './run/stop-run.ts'
import { createEngineWeights, type EngineWeights } from './weights/server-weights.ts'
import { createWeightDisk } from './weights/weight-disk.ts'
import { ComfyApi, type Device } from './wire/comfy-api.ts'
import { type ComfyHttp, credentialsOf, openComfyHttp, withoutCredentials } from './wire/comfy-http.ts'
import { type LiveFeed, openLiveFeed } from './wire/comfy-socket.ts'

interface ComfyDetails {
  /** Without credentials. */
  readonly url: string
  /** As the server last told it: the prompts of all its clients. */
  readonly queueRemaining: number | null
  readonly socket: 'open' | 'connecting' | 'closed'
  readonly catalogAt: Date | null
  readonly device: Device | null
}

export interface ComfyEngine extends FleetEngine {
  details(): ComfyDetails
  /** Resolves when the engine is ready or closed, or the signal is aborted. */
  untilReady(signal?: AbortSignal): Promise<void>
}

const CLOSE_WITHIN_MS = 5_000
// History entries that are not removed in this time stay on the server: stopping the service must not wait for them.
const FORGET_WITHIN_MS = 500
const REDACTED_RUNS = 32

/** Throws CommandError for a launch command that cannot be run; never because a server does not answer. */
export async function openComfyEngine(options: ComfyEngineOptions): Promise<ComfyEngine> {
  const { server, clock } = options
  if (server.kind === 'remote') return new ComfyServerEngine(options, { url: server.url, supervisor: null })
  const supervisor = await openSupervisor(server, { clock })
  return new ComfyServerEngine(options, { url: supervisor.url, supervisor })
}

interface Reach {
  readonly url: URL
  readonly supervisor: Supervisor | null
}

class ComfyServerEngine implements ComfyEngine {
  readonly id: string
  readonly concurrency: number
  readonly recycle?: (reason: string) => Promise<void>
  readonly weightStore?: WeightStore
  readonly keepsRuns?: true
  readonly log: EngineLog
  readonly #bounds: ComfyBounds
  readonly #log: Log
  readonly #shownUrl: string
  readonly #owner: PromptOwner
  readonly #supervisor: Supervisor | null
  readonly #equip: Equip | null
  readonly #http: ComfyHttp
  readonly #api: ComfyApi
  readonly #feed: LiveFeed
  readonly #remover: Remover
  readonly #weights: EngineWeights
  readonly #stage: Stage
  readonly #stopper: Stopper
  readonly #forgetter: Forgetter
  readonly #fitness: Fitness
  readonly #monitor: ServerMonitor
  readonly #silentClasses = new Set<string>()
  readonly #listeners = new Set<() => void>()
  readonly #warnIfUnusable: () => void
  readonly #runs = new Set<Promise<void>>()
  /** Of the present and the latest runs: lines may come late. */
  #redacts: readonly ((text: string) => string)[] = []
  readonly #closing = new AbortController()
  #gone = new AbortController()
  #closed: Promise<void> | null = null

  constructor(options: ComfyEngineOptions, { url, supervisor }: Reach) {
    const bounds = { ...DEFAULT_BOUNDS, ...options.bounds }
    const headers = options.server.kind === 'remote' ? (options.server.headers ?? {}) : {}
    this.#bounds = bounds
    this.#shownUrl = withoutCredentials(url)
    this.id = options.id ?? this.#shownUrl
    this.concurrency = options.concurrency ?? 1
    this.#log = options.log.child({ engine: this.id })
    this.log = createEngineLog(options.clock)
    this.#owner = createPromptOwner(options)
    this.#supervisor = supervisor
    this.#equip = options.equip ?? null
    this.#http = openComfyHttp({ url, headers, connectMs: bounds.callMs, tracer: options.tracer })
    this.#api = new ComfyApi(this.#http, bounds)
    this.#feed = openLiveFeed({
      ...{ api: this.#api, url, bounds, clock: options.clock, log: this.#log },
      headers: { ...headers, ...credentialsOf(url) },
      isOurs: supervisor !== null,
      // Of a process of ours every line is heard below.
      onPrinted: (text) => supervisor === null && this.#hear(text),
      newClientId: this.#owner.newClientId,
      onHeard: () => this.#monitor.heard(),
      onClose: () => {
        this.#monitor.askNow()
        this.#feed.dispatcher.wakeAll()
      },
    })
    this.#stopper = createStopper(this.#api)
    this.#forgetter = createForgetter({ api: this.#api, bounds, log: this.#log })
    const startedIn = options.server.kind === 'supervised' ? (options.server.cwd ?? process.cwd()) : null
    this.#remover = createRemover({ api: this.#api, log: this.#log, startedIn })
    this.#weights = createEngineWeights({ api: this.#api, startedIn })
    this.#stage = new Stage({
      api: this.#api,
      bounds,
      remover: this.#remover,
      maxUploadBytes: () => this.#monitor.state().maxUploadBytes,
    })
    this.#fitness = this.#createFitness(options.findRuns)
    if (options.findRuns !== undefined && supervisor === null) this.keepsRuns = true
    this.#monitor = this.#openMonitor(options.clock)
    this.#warnIfUnusable = createUnusableWarning({
      log: this.#log,
      state: () => this.#monitor.state(),
      lastLines: () => supervisor?.lastLines() ?? [],
      isOurs: supervisor !== null,
      signal: this.#closing.signal,
    })
    if (supervisor === null) return
    const recycle = () => supervisor.recycle()
    this.recycle = recycle
    this.weightStore = createWeightDisk({ findFolders: this.#weights.folders, refresh: () => this.#monitor.reread() })
    this.#supervise(supervisor, options.onEnd)
  }

  refreshList(): Promise<void> {
    return this.#monitor.reread()
  }

  #openMonitor(clock: Clock): ServerMonitor {
    return new ServerMonitor({
      api: this.#api,
      bounds: this.#bounds,
      clock,
      log: this.#log,
      isOurs: this.#supervisor !== null,
      isBusy: () => this.#feed.dispatcher.attached() > 0,
      onConnected: ({ isAnother }) => this.#prepareServer(isAnother),
      onAnswer: async () => {
        await this.#fitness.check()
        return this.#fitness.unfit() !== null || this.#fitness.awaited() > 0
      },
      readWeights: (signal) => this.#weights.list(signal),
      onChange: () => this.#onChange(),
    })
  }

  #supervise(supervisor: Supervisor, onProcessEnd: ComfyEngineOptions['onEnd']): void {
    supervisor.start({
      onLine: (line) => {
        this.#hear(line)
        this.#feed.lines.hearProcess(line)
      },
      onStart: () => this.#monitor.askNow(),
      onEnd: (reason) => {
        this.#hear(`[${reason}]\n`)
        this.#gone.abort('the process of the engine has ended')
        this.#gone = new AbortController()
        this.#startAnew(reason)
        onProcessEnd?.(reason, supervisor.lastLines())
      },
    })
  }

  #hear(text: string): void {
    this.log.hear(this.#redacts.reduce((clean, redact) => redact(clean), text))
  }

  #createFitness(findRuns: ComfyEngineOptions['findRuns']): Fitness {
    return new Fitness({
      ...(findRuns !== undefined && {
        async findKept() {
          const runs = await findRuns()
          return (promptId: string) =>
            runs.some(({ runId, ...run }) => roundOf(promptId, { ...run, claimId: runId }) !== null)
        },
      }),
      api: this.#api,
      bounds: this.#bounds,
      stopper: this.#stopper,
      findOrphanRule: this.#owner.findOrphanRule,
      onChange: () => {
        this.#onChange()
        this.#monitor.askNow()
      },
      onStubborn: () => this.#restartStubborn(),
      onAdopted: (prompts) =>
        this.#log.info({ prompts }, 'an earlier process left prompts on an engine; they are being ended'),
    })
  }

  /** Runs before the server is given any work. */
  async #prepareServer(isAnother: boolean): Promise<void> {
    // While a server starts, tries to reach its socket come ever later: the first runs must not pass by unheard.
    this.#feed.socket.connectNow()
    if (isAnother) this.#fitness.startAnew()
    if (this.#owner.mayEndOrphans()) await this.#fitness.adoptOrphans()
    await this.#fitness.check()
  }

  /** One that cannot be reached now is prepared when it can be. */
  async takeOver(): Promise<void> {
    if (this.#monitor.state().state === 'ready') await this.#prepareServer(false)
  }

  #restartStubborn(): void {
    const reason = this.#fitness.unfit()
    this.#log.error({ reason }, 'an engine does not end a run that was given up')
    this.#supervisor?.recycle().catch((error) => this.#log.error({ err: error }, 'an engine could not be restarted'))
  }

  #startAnew(reason: string | null): void {
    this.#fitness.startAnew()
    this.#stage.forget()
    this.#remover.forget()
    this.#monitor.startAnew(reason)
  }

  #onChange(): void {
    if (!this.#closing.signal.aborted) this.#warnIfUnusable()
    for (const listener of this.#listeners) listener()
  }

  health(): EngineHealth {
    const { state, isGone, incarnation, version, lastError } = this.#monitor.state()
    return {
      state,
      isGone,
      incarnation,
      version,
      lastError,
      unfit: this.#fitness.unfit(),
      awaited: this.#fitness.awaited(),
      reconnects: this.#feed.socket.reconnects(),
      memoryBytes: this.#supervisor?.memoryBytes() ?? null,
      startedAt: this.#supervisor?.startedAt() ?? null,
    }
  }

  details(): ComfyDetails {
    const { catalogAt, device } = this.#monitor.state()
    return {
      url: this.#shownUrl,
      queueRemaining: this.#feed.dispatcher.queueRemaining(),
      socket: this.#feed.socket.state(),
      catalogAt,
      device,
    }
  }

  runtime(): EngineRuntime {
    return this.#monitor.state().runtime
  }

  device(): Device | null {
    return this.#monitor.state().device
  }

  catalog(): NodeCatalog {
    return this.#monitor.state().catalog
  }

  objectInfo(): ObjectInfo | null {
    return this.#monitor.state().objectInfo
  }

  weightFiles(): readonly WeightFile[] | null {
    return this.#monitor.state().weights
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  untilReady(signal?: AbortSignal): Promise<void> {
    const over = AbortSignal.any([this.#closing.signal, ...(signal === undefined ? [] : [signal])])
    return new Promise((resolve) => {
      const look = () => {
        if (this.#monitor.state().state !== 'ready' && !over.aborted) return
        this.#listeners.delete(look)
        over.removeEventListener('abort', look)
        resolve()
      }
      this.#listeners.add(look)
      over.addEventListener('abort', look)
      look()
    })
  }

  async *run(engineRun: EngineRun, options: RunOptions): AsyncGenerator<EngineEvent> {
    if (this.#closing.signal.aborted) throw new EngineLostError('engine_unreachable', 'the engine is closed')
    const ended = Promise.withResolvers<void>()
    this.#runs.add(ended.promise)
    this.#redacts = [...this.#redacts.slice(1 - REDACTED_RUNS), createRedact(engineRun.extraData)]
    try {
      // Lines of the process are kept nowhere else, so the run waits until they are listened to.
      if (this.#supervisor !== null) await this.#feed.lines.settled()
      const extraData = this.#equip === null ? engineRun.extraData : await this.#equip(engineRun)
      yield* runOnServer(this.#runDeps(), { ...engineRun, extraData }, options)
    } finally {
      this.#runs.delete(ended.promise)
      ended.resolve()
    }
  }

  #runDeps(): RunDeps {
    return {
      api: this.#api,
      bounds: this.#bounds,
      dispatcher: this.#feed.dispatcher,
      prints: this.#feed.lines.printed,
      remover: this.#remover,
      closing: this.#closing.signal,
      socket: this.#feed.socket,
      under: this.#feed.under,
      stage: this.#stage,
      stopper: this.#stopper,
      forgetter: this.#forgetter,
      fitness: this.#fitness,
      silentClasses: this.#silentClasses,
      log: this.#log,
      catalog: this.#monitor.state().catalog,
      gone: this.#gone.signal,
      printedAfterMs: this.#feed.lines.lagMs(),
      onUnexpectedRefusal: () => this.#monitor.refresh(),
      onForgotten: () => this.#startAnew('it has forgotten a run'),
    }
  }

  async free({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#api.free({ signal })
    await sleep(this.#bounds.freeSettleMs, signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#closing.abort()
    await settlesWithin(Promise.all(this.#runs), CLOSE_WITHIN_MS)
    // Runs that could not be stopped would otherwise ask on, without a connection, until they give up by themselves.
    this.#gone.abort('the engine was closed')
    await this.#monitor.close()
    await this.#feed.close()
    await settlesWithin(this.#forgetter.close(), FORGET_WITHIN_MS)
    await this.#supervisor?.close()
    await this.#http[Symbol.asyncDispose]()
    this.#onChange()
  }
}
