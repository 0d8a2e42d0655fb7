/**
 * One ComfyUI server as an engine of a fleet. It opens whether or not the server is there: readiness is a state. Runs are
 * only decided by what `/history` and `/queue` say; the socket brings progress, previews and printed lines. A supervised
 * server is started, restarted and ended by us; otherwise it is the same.
 */
import { randomUUID } from 'node:crypto'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin, sleep } from '../../../../lib/sleep.ts'
import type { EngineRun, RunOptions } from '../../../domain/engine/engine.ts'
import { EngineLostError } from '../../../domain/engine/engine-lost-error.ts'
import type { EngineHealth, FleetEngine } from '../../../domain/engine/fleet-engine.ts'
import { type ComfyBounds, DEFAULT_BOUNDS } from './comfy-bounds.ts'
import { createRemover, type Remover } from './files/remove-files.ts'
import { createStage, type Stage } from './files/stage-inputs.ts'
import { createFitness, type Fitness } from './health/fitness.ts'
import { type Device, openPulse, type Pulse } from './health/server-monitor.ts'
import { createTroubleTeller } from './health/unusable-warning.ts'
import { type LaunchOptions, openSupervisor, type Supervisor } from './launch/supervisor.ts'
import { createForgetter, type Forgetter } from './run/forget-runs.ts'
import { type RunDeps, runOnServer } from './run/run-on-server.ts'
import { createStopper, type Stopper } from './run/stop-run.ts'
import { type ComfyApi, createApi } from './wire/comfy-api.ts'
import { type ComfyHttp, credentialsOf, openComfyHttp } from './wire/comfy-http.ts'
import { type EngineSocket, openSocket } from './wire/comfy-socket.ts'
import { createHub, type Hub } from './wire/message-dispatcher.ts'
import { createPrintLog, type PrintLog } from './wire/printed-lines.ts'

export type ComfyServer =
  | {
      readonly kind: 'remote'
      /** May carry a path, and a name and password for a proxy. */
      readonly url: URL
      /** Sent with every call, for example a proxy's token. */
      readonly headers?: Readonly<Record<string, string>>
    }
  | ({ readonly kind: 'supervised' } & LaunchOptions)

export interface ComfyEngineOptions {
  readonly server: ComfyServer
  /** Stable over restarts of ours; absent: the address. */
  readonly id?: string
  /**
   * Names this service towards servers that it shares with others: what a process before us left on a server under this name
   * is ended there. Absent: nothing is.
   */
  readonly ownerId?: string
  /** Names the present process of this service: what another of its engines runs on the same server is not left over. */
  readonly instanceId?: string
  /** How many runs it is given at a time; ComfyUI itself runs one and keeps the others waiting. */
  readonly concurrency?: number
  readonly bounds?: Partial<ComfyBounds>
  readonly log: Log
  readonly clock: Clock
}

export interface ComfyDetails {
  /** Without credentials. */
  readonly url: string
  /** As the server last told: everybody's. */
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
// What is not forgotten in that time stays; nobody who stops a service waits for it.
const FORGET_WITHIN_MS = 500
// What a process printed comes through a pipe of its own, beside the news of its end.
const PIPE_LAG_MS = 50

/** Throws CommandError for a launch command that cannot be meant; never because a server is not there. */
export async function openComfyEngine(options: ComfyEngineOptions): Promise<ComfyEngine> {
  const { server, clock } = options
  if (server.kind === 'remote') return new ServerEngine(options, { url: server.url, supervisor: null })
  const supervisor = await openSupervisor(server, { clock })
  return new ServerEngine(options, { url: supervisor.url, supervisor })
}

interface Reach {
  readonly url: URL
  readonly supervisor: Supervisor | null
}

class ServerEngine implements ComfyEngine {
  readonly id: string
  readonly concurrency: number
  readonly recycle?: (reason: string) => Promise<void>
  readonly #bounds: ComfyBounds
  readonly #log: Log
  readonly #shownUrl: string
  readonly #ownerPrefix: string
  readonly #clientPrefix: string
  readonly #ownerId: string | null
  readonly #supervisor: Supervisor | null
  readonly #http: ComfyHttp
  readonly #api: ComfyApi
  readonly #hub: Hub
  readonly #prints: PrintLog
  readonly #remover: Remover
  readonly #stage: Stage
  readonly #stopper: Stopper
  readonly #forgetter: Forgetter
  readonly #fitness: Fitness
  readonly #pulse: Pulse
  readonly #socket: EngineSocket
  readonly #silentClasses = new Set<string>()
  readonly #listeners = new Set<() => void>()
  readonly #tellTrouble: () => void
  readonly #runs = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  #gone = new AbortController()
  #hearsProcess = false
  /** While it is not known yet how the server's lines are heard. */
  #subscribing: Promise<void> = Promise.resolve()
  #closed: Promise<void> | null = null

  constructor(options: ComfyEngineOptions, { url, supervisor }: Reach) {
    const bounds = { ...DEFAULT_BOUNDS, ...options.bounds }
    const headers = options.server.kind === 'remote' ? (options.server.headers ?? {}) : {}
    this.#bounds = bounds
    this.#shownUrl = withoutCredentials(url)
    this.id = options.id ?? this.#shownUrl
    this.concurrency = options.concurrency ?? 1
    this.#log = options.log.child({ engine: this.id })
    this.#ownerId = options.ownerId ?? null
    this.#ownerPrefix = this.#ownerId === null ? 'atelier-' : `atelier-${this.#ownerId}-`
    this.#clientPrefix = `${this.#ownerPrefix}${options.instanceId ?? randomUUID()}-`
    this.#supervisor = supervisor
    this.#http = openComfyHttp({ url, headers, connectMs: bounds.callMs })
    this.#api = createApi(this.#http, bounds)
    this.#hub = createHub({ ...bounds, onPrinted: (entries) => this.#prints.hear(entries) })
    const tell = (text: string, at: number | null) => this.#hub.receiveLog(text, at)
    this.#prints = createPrintLog({ api: this.#api, clock: options.clock, tell })
    this.#stopper = createStopper(this.#api)
    this.#forgetter = createForgetter({ api: this.#api, bounds, log: this.#log })
    const startedIn = options.server.kind === 'supervised' ? (options.server.cwd ?? process.cwd()) : null
    this.#remover = createRemover({ api: this.#api, log: this.#log, startedIn })
    this.#stage = createStage({
      api: this.#api,
      bounds,
      remover: this.#remover,
      maxUploadBytes: () => this.#pulse.state().maxUploadBytes,
    })
    this.#fitness = this.#createFitness()
    this.#pulse = this.#openPulse(options.clock)
    this.#tellTrouble = createTroubleTeller({
      log: this.#log,
      state: () => this.#pulse.state(),
      lastLines: () => supervisor?.lastLines() ?? [],
      isOurs: supervisor !== null,
      signal: this.#closing.signal,
    })
    this.#socket = this.#openSocket(url, { ...headers, ...credentialsOf(url) })
    if (supervisor === null) return
    this.recycle = () => supervisor.recycle()
    this.#supervise(supervisor)
  }

  #openPulse(clock: Clock): Pulse {
    return openPulse({
      api: this.#api,
      bounds: this.#bounds,
      clock,
      log: this.#log,
      isOurs: this.#supervisor !== null,
      isBusy: () => this.#hub.attached() > 0,
      onMeet: ({ isAnother }) => this.#meet(isAnother),
      onLook: async () => {
        await this.#fitness.look()
        return this.#fitness.unfit() !== null
      },
      onChange: () => this.#tellChange(),
    })
  }

  #openSocket(url: URL, headers: Readonly<Record<string, string>>): EngineSocket {
    return openSocket({
      url,
      headers,
      bounds: this.#bounds,
      log: this.#log,
      newClientId: () => `${this.#clientPrefix}${randomUUID()}`,
      isIdNeeded: () => this.#hub.attached() > 0,
      onMessage: (message) => {
        this.#hub.receive(message)
        this.#pulse.heard()
      },
      onOpen: (clientId) => {
        this.#subscribing = this.#subscribeLogs(clientId)
        this.#pulse.heard()
      },
      onClose: this.#pulse.look,
    })
  }

  #supervise(supervisor: Supervisor): void {
    supervisor.start({
      onLine: (line) => {
        if (this.#hearsProcess) this.#hub.receiveLog(line)
      },
      onStart: this.#pulse.look,
      onEnd: (reason) => {
        this.#gone.abort()
        this.#gone = new AbortController()
        this.#startAnew(reason)
      },
    })
  }

  /** From the server's own record and over the socket; a server that has neither is heard through its process. */
  async #subscribeLogs(clientId: string): Promise<void> {
    try {
      const isSubscribed = await this.#api.subscribeLogs(clientId)
      // While something runs, what was printed in the meantime is not nobody's.
      if (this.#hub.attached() === 0) await this.#prints.begin()
      this.#hearsProcess = !isSubscribed && !this.#prints.hasRecord()
    } catch (error) {
      this.#log.debug({ err: error }, 'the lines of an engine cannot be heard')
    }
  }

  #createFitness(): Fitness {
    return createFitness({
      api: this.#api,
      bounds: this.#bounds,
      stopper: this.#stopper,
      // The data folder is locked to one process: what carries the service's name and not that of its present process is nobody's.
      isOrphan: (clientId) => clientId.startsWith(this.#ownerPrefix) && !clientId.startsWith(this.#clientPrefix),
      onChange: () => {
        this.#tellChange()
        this.#pulse.look()
      },
      onStubborn: () => this.#replaceStubborn(),
      onAdopted: (prompts) =>
        this.#log.info({ prompts }, 'an earlier process left prompts on an engine; they are ended'),
    })
  }

  /** Before it is given any work. */
  async #meet(isAnother: boolean): Promise<void> {
    if (isAnother) this.#fitness.startAnew()
    if (this.#ownerId !== null) await this.#fitness.adopt()
    await this.#fitness.look()
  }

  #replaceStubborn(): void {
    const reason = this.#fitness.unfit()
    this.#log.error({ reason }, 'an engine does not let go of a run')
    this.#supervisor?.recycle().catch((error) => this.#log.error({ err: error }, 'an engine could not be restarted'))
  }

  #startAnew(reason: string | null): void {
    this.#fitness.startAnew()
    this.#stage.forget()
    this.#remover.forget()
    this.#pulse.startAnew(reason)
  }

  #tellChange(): void {
    if (!this.#closing.signal.aborted) this.#tellTrouble()
    for (const listener of this.#listeners) listener()
  }

  health(): EngineHealth {
    const { state, incarnation, version, lastError } = this.#pulse.state()
    return {
      state,
      incarnation,
      version,
      lastError,
      unfit: this.#fitness.unfit(),
      reconnects: this.#socket.reconnects(),
      memoryBytes: this.#supervisor?.memoryBytes() ?? null,
      startedAt: this.#supervisor?.startedAt() ?? null,
    }
  }

  details(): ComfyDetails {
    const { catalogAt, device } = this.#pulse.state()
    return {
      url: this.#shownUrl,
      queueRemaining: this.#hub.queueRemaining(),
      socket: this.#socket.state(),
      catalogAt,
      device,
    }
  }

  catalog(): NodeCatalog {
    return this.#pulse.state().catalog
  }

  objectInfo(): ObjectInfo | null {
    return this.#pulse.state().objectInfo
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async untilReady(signal?: AbortSignal): Promise<void> {
    const over = AbortSignal.any([this.#closing.signal, ...(signal === undefined ? [] : [signal])])
    await new Promise<void>((resolve) => {
      const look = () => {
        if (this.#pulse.state().state !== 'ready' && !over.aborted) return
        this.#listeners.delete(look)
        over.removeEventListener('abort', look)
        resolve()
      }
      this.#listeners.add(look)
      over.addEventListener('abort', look)
      look()
    })
  }

  async *run(engineRun: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent> {
    if (this.#closing.signal.aborted) throw new EngineLostError('engine_unreachable', 'the engine is closed')
    const over = Promise.withResolvers<void>()
    this.#runs.add(over.promise)
    try {
      // What the process prints is nowhere else, so the run waits until somebody listens.
      if (this.#supervisor !== null) await this.#subscribing
      yield* runOnServer(this.#runDeps(), engineRun, { signal: AbortSignal.any([signal, this.#closing.signal]) })
    } finally {
      this.#runs.delete(over.promise)
      over.resolve()
    }
  }

  #runDeps(): RunDeps {
    return {
      api: this.#api,
      bounds: this.#bounds,
      hub: this.#hub,
      prints: this.#prints,
      remover: this.#remover,
      closing: this.#closing.signal,
      socket: this.#socket,
      stage: this.#stage,
      stopper: this.#stopper,
      forgetter: this.#forgetter,
      fitness: this.#fitness,
      silentClasses: this.#silentClasses,
      log: this.#log,
      catalog: this.#pulse.state().catalog,
      gone: this.#gone.signal,
      printedAfterMs: this.#hearsProcess && this.#supervisor !== null ? PIPE_LAG_MS : 0,
      onSurprise: this.#pulse.refresh,
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
    await this.#pulse.close()
    await this.#socket.close()
    await settlesWithin(this.#forgetter.close(), FORGET_WITHIN_MS)
    await this.#supervisor?.close()
    await this.#http[Symbol.asyncDispose]()
    this.#tellChange()
  }
}

function withoutCredentials(url: URL): string {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  shown.search = ''
  shown.hash = ''
  return shown.href.replace(/\/+$/, '')
}
