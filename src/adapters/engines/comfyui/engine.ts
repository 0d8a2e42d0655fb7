/**
 * One ComfyUI server as an engine of a fleet. It opens whether or not the server is there: readiness is a state. Runs are
 * only decided by what `/history` and `/queue` say; the socket brings progress, previews and printed lines. A supervised
 * server is started, restarted and ended by us; otherwise it is the same.
 */
import { randomUUID } from 'node:crypto'
import type { EngineRun, RunOptions } from '../../../domain/engine/engine.ts'
import type { EngineEvent } from '../../../domain/engine/engine-event.ts'
import { EngineLostError } from '../../../domain/engine/engine-lost-error.ts'
import type { EngineHealth, FleetEngine } from '../../../domain/engine/fleet-engine.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { settlesWithin, sleep } from '../../../lib/sleep.ts'
import { createApi } from './api.ts'
import { type ComfyBounds, DEFAULT_BOUNDS } from './bounds.ts'
import { credentialsOf, openHttp } from './http.ts'
import { createHub } from './hub.ts'
import { type LaunchOptions, openSupervisor, type Supervisor } from './launch/supervisor.ts'
import { type Device, openPulse } from './pulse.ts'
import { type RunDeps, runOnServer } from './run.ts'
import { openSocket } from './socket.ts'
import { createStage } from './stage-inputs.ts'
import { createStopper } from './stop-run.ts'

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
// What a process printed comes through a pipe of its own, beside the news of its end.
const PIPE_LAG_MS = 50

/** Throws CommandError for a launch command that cannot be meant; never because a server is not there. */
export async function openComfyEngine(options: ComfyEngineOptions): Promise<ComfyEngine> {
  const { server, clock, concurrency = 1 } = options
  const bounds = { ...DEFAULT_BOUNDS, ...options.bounds }
  const supervisor = server.kind === 'remote' ? null : await openSupervisor(server, { clock, log: options.log })
  const url = server.kind === 'remote' ? server.url : (supervisor as Supervisor).url
  const shownUrl = withoutCredentials(url)
  const id = options.id ?? shownUrl
  const log = options.log.child({ engine: id })
  const http = openHttp({ url, headers: headersOf(server), connectMs: bounds.callMs })
  const api = createApi(http, bounds)
  const hub = createHub(bounds)
  const listeners = new Set<() => void>()
  const runs = new Set<Promise<unknown>>()
  const silentClasses = new Set<string>()
  const closing = new AbortController()
  let gone = new AbortController()
  let hearsProcess = false

  const tellChange = () => {
    for (const listener of listeners) listener()
  }
  const pulse = openPulse({
    api,
    bounds,
    clock,
    log,
    isOurs: supervisor !== null,
    isBusy: () => hub.attached() > 0,
    onChange: tellChange,
  })
  const socket = openSocket({
    url,
    headers: { ...headersOf(server), ...credentialsOf(url) },
    bounds,
    log,
    newClientId: () => `atelier-${randomUUID()}`,
    isIdNeeded: () => hub.attached() > 0,
    onMessage: hub.receive,
    onOpen: (clientId) => subscribeLogs(clientId),
    onClose: pulse.look,
  })
  const stage = createStage({ api, bounds, maxUploadBytes: () => pulse.state().maxUploadBytes })
  const stopper = createStopper(api)

  /** Over the socket, where lines stand in order with events; a server that cannot do that is heard through its process. */
  function subscribeLogs(clientId: string): void {
    api.subscribeLogs(clientId).then(
      (isSubscribed) => {
        hearsProcess = !isSubscribed
      },
      (error) => log.debug({ err: error }, 'the lines of an engine cannot be heard'),
    )
  }

  function startAnew(reason: string | null): void {
    stage.forget()
    pulse.startAnew(reason)
  }

  supervisor?.start({
    onLine(line) {
      if (hearsProcess) hub.receiveLog(line)
    },
    onStart: pulse.look,
    onEnd(reason) {
      gone.abort()
      gone = new AbortController()
      startAnew(reason)
    },
  })

  function health(): EngineHealth {
    const { state, incarnation, version, lastError } = pulse.state()
    return {
      state,
      incarnation,
      version,
      lastError,
      reconnects: socket.reconnects(),
      memoryBytes: supervisor?.memoryBytes() ?? null,
      startedAt: supervisor?.startedAt() ?? null,
    }
  }

  async function* run(engineRun: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent> {
    if (closing.signal.aborted) throw new EngineLostError('engine_unreachable', 'the engine is closed')
    const deps: RunDeps = {
      api,
      bounds,
      hub,
      socket,
      stage,
      stopper,
      silentClasses,
      log,
      catalog: pulse.state().catalog,
      gone: gone.signal,
      printedAfterMs: hearsProcess && supervisor !== null ? PIPE_LAG_MS : 0,
      onSurprise: pulse.refresh,
      onForgotten: () => startAnew('it has forgotten a run'),
    }
    const over = Promise.withResolvers<void>()
    runs.add(over.promise)
    try {
      yield* runOnServer(deps, engineRun, { signal: AbortSignal.any([signal, closing.signal]) })
    } finally {
      runs.delete(over.promise)
      over.resolve()
    }
  }

  async function close(): Promise<void> {
    closing.abort()
    await settlesWithin(Promise.all(runs), CLOSE_WITHIN_MS)
    await pulse.close()
    await socket.close()
    await supervisor?.close()
    await http.close()
    tellChange()
  }
  let closed: Promise<void> | null = null

  return {
    id,
    concurrency,
    health,
    catalog: () => pulse.state().catalog,
    objectInfo: () => pulse.state().objectInfo,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    run,
    async free({ signal }) {
      await api.free({ signal })
      await sleep(bounds.freeSettleMs, signal)
    },
    ...(supervisor === null ? {} : { recycle: () => supervisor.recycle() }),
    details: () => ({
      url: shownUrl,
      queueRemaining: hub.queueRemaining(),
      socket: socket.state(),
      catalogAt: pulse.state().catalogAt,
      device: pulse.state().device,
    }),
    untilReady: (signal) =>
      untilReady({ isReady: () => pulse.state().state === 'ready', listeners, signals: [closing.signal, signal] }),
    [Symbol.asyncDispose]() {
      closed ??= close()
      return closed
    },
  }
}

function headersOf(server: ComfyServer): Readonly<Record<string, string>> {
  return server.kind === 'remote' ? (server.headers ?? {}) : {}
}

function withoutCredentials(url: URL): string {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  shown.search = ''
  shown.hash = ''
  return shown.href.replace(/\/+$/, '')
}

interface ReadyWait {
  isReady(): boolean
  readonly listeners: Set<() => void>
  readonly signals: readonly (AbortSignal | undefined)[]
}

async function untilReady({ isReady, listeners, signals }: ReadyWait): Promise<void> {
  const over = AbortSignal.any(signals.filter((signal) => signal !== undefined))
  await new Promise<void>((resolve) => {
    const look = () => {
      if (!isReady() && !over.aborted) return
      listeners.delete(look)
      over.removeEventListener('abort', look)
      resolve()
    }
    listeners.add(look)
    over.addEventListener('abort', look)
    look()
  })
}
