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
import { createBackoff, createDoorbell, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { EngineTrouble } from '../../../../domain/engine/fleet/fleet-engine.ts'
import type { WeightFile } from '../../../../domain/engine/weights/weight-files.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { RECYCLED } from '../launch/supervisor.ts'
import { type ComfyApi, type Device, readDevice, readObjectInfo } from '../wire/comfy-api.ts'
import { CallError, isNobodyThere } from '../wire/comfy-http.ts'
import { toText } from '../wire/socket-frames.ts'

interface ServerState {
  readonly state: 'starting' | 'ready' | 'lost'
  readonly incarnation: number
  readonly version: string | null
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

export interface ServerMonitor {
  state(): ServerState
  /** Something happened: ask the server now. */
  askNow(): void
  /** A message came. If the server did not answer before, ask it now: prompts that were left on it must not run on. */
  heard(): void
  /** The node classes may have changed. */
  refresh(): void
  /** The weights have changed, and with them what loaders offer. Resolves when both were asked for after this call. */
  reread(): Promise<void>
  /** A new server process is, or soon will be, behind the address. */
  startAnew(reason: string | null): void
  close(): Promise<void>
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
const FIRST_RETRY_MS = 250
const OWN_RETRY_MAX_MS = 1_000
const EMPTY_CATALOG = catalogOf({})

export function openServerMonitor(options: ServerMonitorOptions): ServerMonitor {
  const { api, bounds, clock, log } = options
  const closing = new AbortController()
  const bell = createDoorbell()
  const maxMs = options.isOurs ? Math.min(OWN_RETRY_MAX_MS, bounds.probeMaxMs) : bounds.probeMaxMs
  const backoff = createBackoff({ firstMs: Math.min(FIRST_RETRY_MS, maxMs), maxMs })
  let state: ServerState = {
    state: 'starting',
    incarnation: 1,
    version: null,
    device: null,
    lastError: null,
    objectInfo: null,
    catalog: EMPTY_CATALOG,
    catalogAt: null,
    maxUploadBytes: null,
    weights: null,
  }
  let reading = Promise.resolve()
  let infoHash = ''
  let infoReadAt = Number.NEGATIVE_INFINITY
  let isInfoDue = true
  /** Who waits for a reading that begins from now on, however short ago the last one was; null: nobody. */
  let awaited: PromiseWithResolvers<void> | null = null
  let failures = 0
  let wasRefused = false

  function change(news: Partial<ServerState>): void {
    state = { ...state, ...news }
    options.onChange()
  }

  function note(message: string): EngineTrouble {
    return { message, at: clock.now() }
  }

  async function probe(): Promise<void> {
    if (state.state !== 'ready') await connect()
    else if (awaited !== null || sinceInfoMs() >= (isInfoDue ? bounds.catalogMinMs : bounds.catalogEveryMs))
      await readInfo()
    else await api.queueRemaining({ signal: closing.signal })
  }

  function sinceInfoMs(): number {
    return performance.now() - infoReadAt
  }

  /** Reads everything from a new server, or from one that has come back. */
  async function connect(): Promise<void> {
    const { signal } = closing
    const stats = await api.systemStats({ signal })
    const features = await api.features({ signal })
    await readInfo()
    const limit = features?.max_upload_size
    const isAnother = state.state === 'lost' && wasRefused
    await options.onConnected({ isAnother })
    wasRefused = false
    change({
      state: 'ready',
      incarnation: state.incarnation + (isAnother ? 1 : 0),
      version: isJsonObject(stats?.system) ? toText(stats.system.comfyui_version) : null,
      device: stats === null ? null : readDevice(stats),
      maxUploadBytes: typeof limit === 'number' ? limit : null,
    })
    log.info({ version: state.version, nodeClasses: state.catalog.classTypes().length }, 'an engine is ready')
  }

  async function readInfo(): Promise<void> {
    // From here on: what changes while the answer is on its way may not be in it.
    const [wasDue, waiting] = [isInfoDue, awaited]
    isInfoDue = false
    awaited = null
    try {
      await readClasses()
    } catch (error) {
      isInfoDue ||= wasDue || waiting !== null
      throw error
    } finally {
      void reading.finally(() => waiting?.resolve())
    }
  }

  async function readClasses(): Promise<void> {
    const text = await api.objectInfo({ signal: closing.signal })
    infoReadAt = performance.now()
    reading = reading.then(readWeights)
    const hash = createHash('sha256').update(text).digest('base64')
    // An unchanged text keeps the same objects, and with them everything that was derived from them.
    if (hash === infoHash) return
    const objectInfo = readObjectInfo(text)
    infoHash = hash
    change({ objectInfo, catalog: catalogOf(objectInfo), catalogAt: clock.now() })
  }

  /** Beside everything else: which files there are, and how large, decides nothing that a run waits for. */
  async function readWeights(): Promise<void> {
    try {
      const weights = await options.readWeights(closing.signal)
      if (JSON.stringify(weights) !== JSON.stringify(state.weights)) change({ weights })
    } catch (error) {
      if (!closing.signal.aborted) log.debug({ err: error }, 'the weights of an engine could not be listed')
    }
  }

  function onFailure(error: unknown): void {
    failures++
    const isRefused = error instanceof CallError && error.fault === 'unreachable'
    wasRefused ||= isNobodyThere(error)
    const tries = isRefused ? 1 : options.isBusy() ? TRIES_BUSY : TRIES_IDLE
    const message = error instanceof Error ? error.message : String(error)
    if (state.state === 'ready' && failures >= tries) {
      log.warn({ err: error }, 'an engine does not answer any more')
      change({ state: 'lost', lastError: note(message) })
    } else if (!(isRefused && options.isOurs) && state.lastError?.message !== message) {
      change({ lastError: note(message) })
    }
  }

  async function keepAsking(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await probe()
        const isSoon = await options.onAnswer()
        failures = 0
        backoff.reset()
        await bell.wait(isSoon ? Math.min(bounds.pollMaxMs, bounds.probeEveryMs) : bounds.probeEveryMs, closing.signal)
      } catch (error) {
        if (closing.signal.aborted) return
        onFailure(error)
        await bell.wait(backoff.nextMs(), closing.signal)
      }
    }
  }

  const ended = keepAsking()

  return {
    state: () => state,
    askNow: () => bell.ring(),
    heard() {
      if (failures > 0) bell.ring()
    },
    refresh() {
      isInfoDue = true
      bell.ring()
    },
    reread() {
      awaited ??= Promise.withResolvers<void>()
      bell.ring()
      return awaited.promise
    },
    startAnew(reason) {
      wasRefused = false
      backoff.reset()
      change({
        state: 'starting',
        incarnation: state.incarnation + 1,
        ...(reason === null ? {} : { lastError: note(reason) }),
      })
      bell.ring()
    },
    async close() {
      closing.abort()
      awaited?.resolve()
      await ended
      await reading
    },
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
