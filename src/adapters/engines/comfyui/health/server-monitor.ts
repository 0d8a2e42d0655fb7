/**
 * Whether the server answers, and what it can run. An idle server is asked one small question every few seconds, an absent one
 * ever more rarely. Its node classes, which are expensive for it to list, are read only now and then and when something suggests
 * that they have changed. No run and no request waits for these questions.
 */
import { createHash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../../engine/graph/object-info.ts'
import type { Clock } from '../../../../../lib/clock.ts'
import { isJsonObject } from '../../../../../lib/json/lossless-json.ts'
import type { Log } from '../../../../../lib/log.ts'
import { type Backoff, createBackoff, createDoorbell, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { EngineTrouble } from '../../../../domain/engine/fleet/fleet-engine.ts'
import type { EngineRuntime } from '../../../../domain/engine/fleet/observed-release.ts'
import type { WeightFile } from '../../../../domain/engine/weights/weight-files.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { RECYCLED } from '../launch/supervisor.ts'
import { type ComfyApi, type Device, readDevice, readObjectInfo, readRuntime } from '../wire/comfy-api.ts'
import { CallError, isNobodyThere } from '../wire/comfy-http.ts'
import { toText } from '../wire/socket-frames.ts'
import { explainTrouble } from './explain-trouble.ts'

interface ServerState {
  readonly state: 'starting' | 'ready' | 'lost'
  /** Connections were refused twice in a row: no process is behind the address, and what one had there is lost. */
  readonly isGone: boolean
  readonly incarnation: number
  readonly version: string | null
  readonly runtime: EngineRuntime
  readonly device: Device | null
  readonly lastError: EngineTrouble | null
  readonly objectInfo: ObjectInfo | null
  readonly catalog: NodeCatalog
  readonly catalogAt: Date | null
  /** The largest upload that the server accepts; null: not known. */
  readonly maxUploadBytes: number | null
  /** The same object until they change; null: not told yet, or not at all. */
  readonly weights: readonly WeightFile[] | null
}

interface ServerMonitorOptions {
  readonly api: Pick<ComfyApi, 'systemStats' | 'features' | 'objectInfo' | 'queueRemaining'>
  readonly bounds: ComfyBounds
  readonly clock: Clock
  readonly log: Log
  /** We started it ourselves: that it does not answer at first is expected, and it may be asked often. */
  readonly isOurs: boolean
  /** Runs of ours are under way, so the server may be slow to answer. */
  isBusy(): boolean
  /** Before a new server, or one that has come back, counts as ready. `isAnother`: it is another process than before. */
  onConnected(options: { readonly isAnother: boolean }): Promise<void>
  /** After every question that was answered. True: the next one should come soon. */
  onAnswer(): Promise<boolean>
  /** null: the server lists none. */
  readWeights(signal: AbortSignal): Promise<readonly WeightFile[] | null>
  onChange(): void
}

// A server that is computing may answer late; one that runs nothing should not.
const TRIES_BUSY = 4
const TRIES_IDLE = 2
const REFUSALS_OF_NOBODY = 2
const FIRST_RETRY_MS = 250
const OWN_RETRY_MAX_MS = 1_000
const EMPTY_CATALOG = catalogOf({})
const UNSAID: EngineRuntime = { python: null, torch: null }

export class ServerMonitor {
  readonly #deps: ServerMonitorOptions
  readonly #closing = new AbortController()
  readonly #bell = createDoorbell()
  readonly #backoff: Backoff
  #state: ServerState = {
    state: 'starting',
    isGone: false,
    incarnation: 1,
    version: null,
    runtime: UNSAID,
    device: null,
    lastError: null,
    objectInfo: null,
    catalog: EMPTY_CATALOG,
    catalogAt: null,
    maxUploadBytes: null,
    weights: null,
  }
  #reading = Promise.resolve()
  #infoHash = ''
  #infoReadAt = Number.NEGATIVE_INFINITY
  #isInfoDue = true
  /** Who waits for a reading that begins from now on, however short ago the last one was; null: nobody. */
  #awaited: PromiseWithResolvers<void> | null = null
  #failures = 0
  #refusals = 0
  #wasRefused = false
  readonly #ended: Promise<void>

  constructor(deps: ServerMonitorOptions) {
    this.#deps = deps
    const maxMs = deps.isOurs ? Math.min(OWN_RETRY_MAX_MS, deps.bounds.probeMaxMs) : deps.bounds.probeMaxMs
    this.#backoff = createBackoff({ firstMs: Math.min(FIRST_RETRY_MS, maxMs), maxMs })
    this.#ended = this.#keepAsking()
  }

  state(): ServerState {
    return this.#state
  }

  /** Something happened: ask the server now. */
  askNow(): void {
    this.#bell.ring()
  }

  /** A message came. If the server did not answer before, ask it now: prompts that were left on it must not run on. */
  heard(): void {
    if (this.#failures > 0) this.#bell.ring()
  }

  /** The node classes may have changed. */
  refresh(): void {
    this.#isInfoDue = true
    this.#bell.ring()
  }

  /** The weights have changed, and with them what loaders offer. Resolves when both were asked for after this call. */
  reread(): Promise<void> {
    this.#awaited ??= Promise.withResolvers<void>()
    this.#bell.ring()
    return this.#awaited.promise
  }

  /** A new server process is, or soon will be, behind the address. */
  startAnew(reason: string | null): void {
    this.#wasRefused = false
    this.#backoff.reset()
    this.#change({
      state: 'starting',
      incarnation: this.#state.incarnation + 1,
      ...(reason === null ? {} : { lastError: this.#note(reason) }),
    })
    this.#bell.ring()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#awaited?.resolve()
    await this.#ended
    await this.#reading
  }

  #change(news: Partial<ServerState>): void {
    this.#state = { ...this.#state, ...news }
    this.#deps.onChange()
  }

  #note(message: string): EngineTrouble {
    return { message, at: this.#deps.clock.now() }
  }

  async #probe(): Promise<void> {
    const { bounds, api } = this.#deps
    if (this.#state.state !== 'ready') await this.#connect()
    else if (
      this.#awaited !== null ||
      this.#sinceInfoMs() >= (this.#isInfoDue ? bounds.catalogMinMs : bounds.catalogEveryMs)
    )
      await this.#readInfo()
    else await api.queueRemaining({ signal: this.#closing.signal })
  }

  #sinceInfoMs(): number {
    return performance.now() - this.#infoReadAt
  }

  /** Reads everything from a new server, or from one that has come back. */
  async #connect(): Promise<void> {
    const { api, onConnected, log } = this.#deps
    const { signal } = this.#closing
    const stats = await api.systemStats({ signal })
    const features = await api.features({ signal })
    await this.#readInfo()
    const limit = features?.max_upload_size
    const isAnother = this.#state.state === 'lost' && this.#wasRefused
    await onConnected({ isAnother })
    this.#wasRefused = false
    this.#change({
      state: 'ready',
      isGone: false,
      incarnation: this.#state.incarnation + (isAnother ? 1 : 0),
      version: isJsonObject(stats?.system) ? toText(stats.system.comfyui_version) : null,
      runtime: isJsonObject(stats?.system) ? readRuntime(stats.system) : UNSAID,
      device: stats === null ? null : readDevice(stats),
      maxUploadBytes: typeof limit === 'number' ? limit : null,
    })
    log.info(
      { version: this.#state.version, nodeClasses: this.#state.catalog.classTypes().length },
      'an engine is ready',
    )
  }

  async #readInfo(): Promise<void> {
    // From here on: what changes while the answer is on its way may not be in it.
    const [wasDue, waiting] = [this.#isInfoDue, this.#awaited]
    this.#isInfoDue = false
    this.#awaited = null
    try {
      await this.#readClasses()
    } catch (error) {
      this.#isInfoDue ||= wasDue || waiting !== null
      throw error
    } finally {
      void this.#reading.finally(() => waiting?.resolve())
    }
  }

  async #readClasses(): Promise<void> {
    const text = await this.#deps.api.objectInfo({ signal: this.#closing.signal })
    this.#infoReadAt = performance.now()
    this.#reading = this.#reading.then(() => this.#readWeights())
    const hash = createHash('sha256').update(text).digest('base64')
    // An unchanged text keeps the same objects, and with them everything that was derived from them.
    if (hash === this.#infoHash) return
    const objectInfo = readObjectInfo(text)
    this.#infoHash = hash
    this.#change({ objectInfo, catalog: catalogOf(objectInfo), catalogAt: this.#deps.clock.now() })
  }

  /** Beside everything else: which files there are, and how large, decides nothing that a run waits for. */
  async #readWeights(): Promise<void> {
    try {
      const weights = await this.#deps.readWeights(this.#closing.signal)
      if (JSON.stringify(weights) !== JSON.stringify(this.#state.weights)) this.#change({ weights })
    } catch (error) {
      if (!this.#closing.signal.aborted)
        this.#deps.log.debug({ err: error }, 'the weights of an engine could not be listed')
    }
  }

  #onFailure(error: unknown): void {
    const { isBusy, log, isOurs } = this.#deps
    this.#failures++
    const isRefused = error instanceof CallError && error.fault === 'unreachable'
    this.#wasRefused ||= isNobodyThere(error)
    this.#refusals = isNobodyThere(error) ? this.#refusals + 1 : 0
    const isGone = this.#refusals >= REFUSALS_OF_NOBODY
    if (isGone !== this.#state.isGone) this.#change({ isGone })
    const tries = isRefused ? 1 : isBusy() ? TRIES_BUSY : TRIES_IDLE
    const message = explainTrouble(error)
    if (this.#state.state === 'ready' && this.#failures >= tries) {
      log.warn({ err: error }, 'an engine does not answer any more')
      this.#change({ state: 'lost', lastError: this.#note(message) })
    } else if (!(isRefused && isOurs) && this.#state.lastError?.message !== message) {
      this.#change({ lastError: this.#note(message) })
    }
  }

  async #keepAsking(): Promise<void> {
    const { onAnswer, bounds } = this.#deps
    while (!this.#closing.signal.aborted) {
      try {
        await this.#probe()
        const isSoon = await onAnswer()
        this.#failures = 0
        this.#refusals = 0
        this.#backoff.reset()
        await this.#bell.wait(
          isSoon ? Math.min(bounds.pollMaxMs, bounds.probeEveryMs) : bounds.probeEveryMs,
          this.#closing.signal,
        )
      } catch (error) {
        if (this.#closing.signal.aborted) return
        this.#onFailure(error)
        await this.#bell.wait(this.#backoff.nextMs(), this.#closing.signal)
      }
    }
  }
}

/**
 * Logs that a server cannot be used, why, and what its process printed last: soon after that is known, and again only when the
 * reason changes or when the server has been ready in between.
 */
interface UnusableWarningOptions {
  readonly log: Log
  state(): Pick<ServerState, 'state' | 'lastError'>
  /** The last lines of its process; empty when we did not start it. */
  lastLines(): readonly string[]
  /** We started it ourselves: that it does not answer at first is expected. */
  readonly isOurs: boolean
  readonly signal: AbortSignal
}

// A server that accepts connections and never answers would be noticed only when the call to it times out: too late to be useful.
const FIRST_WARNING_MS = 4_000
// The words with which the call itself will end.
const NO_ANSWER = '/system_stats did not answer in time'

/** Returns the function to call whenever the state of the server has changed. */
export function createUnusableWarning(options: UnusableWarningOptions): () => void {
  const { log, isOurs } = options
  let logged: string | null = null
  let wasReady = false

  function warn(reason: string): void {
    if (logged !== null && withoutRoute(reason) === withoutRoute(logged)) return
    logged = reason
    const lastLines = options.lastLines()
    log.warn({ reason, ...(lastLines.length > 0 && { lastLines }) }, 'an engine cannot be used')
  }

  function look(): void {
    const { state, lastError } = options.state()
    if (state === 'ready') logged = null
    // That a ready server stopped answering was logged where it was noticed.
    else if (state === 'lost' && wasReady) logged = lastError?.message ?? null
    else if (lastError !== null && lastError.message !== RECYCLED) warn(lastError.message)
    wasReady = state === 'ready'
  }

  async function warnOfSilence(): Promise<void> {
    await sleep(FIRST_WARNING_MS, options.signal)
    if (options.signal.aborted || logged !== null || options.state().state !== 'starting') return
    warn(NO_ANSWER)
  }

  if (!isOurs) void warnOfSilence()
  return look
}

/** Reasons that differ only in the route that was asked are the same. */
function withoutRoute(reason: string): string {
  return reason.replace(/^\/[^\s:]+/, '')
}
