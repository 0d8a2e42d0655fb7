/**
 * Whether the server is there, and what it can run. An idle server is asked one small question every few seconds; an absent
 * one ever more rarely; its node classes, which it has to put together anew for every reader, only now and then, and when
 * something suggests that they have changed. Nothing here is asked while somebody waits for it.
 */
import { createHash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../../../engine/graph/object-info.ts'
import { createBackoff } from '../../../../../lib/backoff.ts'
import type { Clock } from '../../../../../lib/clock.ts'
import { createDoorbell } from '../../../../../lib/doorbell.ts'
import { isJsonObject, type JsonObject } from '../../../../../lib/json/lossless-json.ts'
import type { Log } from '../../../../../lib/log.ts'
import type { EngineTrouble } from '../../../../domain/engine/fleet-engine.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { CallError, isNobodyThere } from '../wire/comfy-http.ts'
import { readObjectInfo } from '../wire/read-server-info.ts'
import { toText } from '../wire/socket-frames.ts'

export interface Device {
  readonly name: string
  readonly vramTotalBytes: number | null
  readonly vramFreeBytes: number | null
}

export interface PulseState {
  readonly state: 'starting' | 'ready' | 'lost'
  readonly incarnation: number
  readonly version: string | null
  readonly device: Device | null
  readonly lastError: EngineTrouble | null
  readonly objectInfo: ObjectInfo | null
  readonly catalog: NodeCatalog
  readonly catalogAt: Date | null
  /** What the server takes as one upload; null: not known. */
  readonly maxUploadBytes: number | null
}

export interface Pulse {
  state(): PulseState
  /** Something happened: look now. */
  look(): void
  /** The server said something: if it was silent, look now, for what was left there must not run on. */
  heard(): void
  /** The node classes may have changed. */
  refresh(): void
  /** The process behind the address is, or will be, another one. */
  startAnew(reason: string | null): void
  close(): Promise<void>
}

export interface PulseOptions {
  readonly api: ComfyApi
  readonly bounds: ComfyBounds
  readonly clock: Clock
  readonly log: Log
  /** It is started by us: that nobody answers for a while is no news, and asking costs nobody anything. */
  readonly isOurs: boolean
  /** Runs of ours are under way: the server may be too busy to answer at once. */
  isBusy(): boolean
  /** After the first words with a server, or with one that has come back, before it counts as ready. */
  onMeet(options: { readonly isAnother: boolean }): Promise<void>
  /** At every look. True: the next one should come soon. */
  onLook(): Promise<boolean>
  onChange(): void
}

// A server that computes answers late now and then; one that runs nothing has no excuse.
const TRIES_BUSY = 4
const TRIES_IDLE = 2
const FIRST_RETRY_MS = 250
const OWN_RETRY_MAX_MS = 1_000
const EMPTY_CATALOG = catalogOf({})

export function openPulse(options: PulseOptions): Pulse {
  const { api, bounds, clock, log } = options
  const closing = new AbortController()
  const bell = createDoorbell()
  const maxMs = options.isOurs ? Math.min(OWN_RETRY_MAX_MS, bounds.probeMaxMs) : bounds.probeMaxMs
  const backoff = createBackoff({ firstMs: Math.min(FIRST_RETRY_MS, maxMs), maxMs })
  let state: PulseState = {
    state: 'starting',
    incarnation: 1,
    version: null,
    device: null,
    lastError: null,
    objectInfo: null,
    catalog: EMPTY_CATALOG,
    catalogAt: null,
    maxUploadBytes: null,
  }
  let infoHash = ''
  let infoReadAt = Number.NEGATIVE_INFINITY
  let isInfoDue = true
  let failures = 0
  let wasRefused = false

  function change(news: Partial<PulseState>): void {
    state = { ...state, ...news }
    options.onChange()
  }

  function note(message: string): EngineTrouble {
    return { message, at: clock.now() }
  }

  async function probe(): Promise<void> {
    if (state.state !== 'ready') await meet()
    else if (isInfoDue ? sinceInfoMs() >= bounds.catalogMinMs : sinceInfoMs() >= bounds.catalogEveryMs) await readInfo()
    else await api.queueRemaining({ signal: closing.signal })
  }

  function sinceInfoMs(): number {
    return performance.now() - infoReadAt
  }

  /** The first words with a server, or with one that has come back. */
  async function meet(): Promise<void> {
    const { signal } = closing
    const stats = await api.systemStats({ signal })
    const features = await api.features({ signal })
    await readInfo()
    const limit = features?.max_upload_size
    const isAnother = state.state === 'lost' && wasRefused
    await options.onMeet({ isAnother })
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
    const text = await api.objectInfo({ signal: closing.signal })
    infoReadAt = performance.now()
    isInfoDue = false
    const hash = createHash('sha256').update(text).digest('base64')
    // The same words keep the same objects: whatever was derived from them stays good.
    if (hash === infoHash) return
    const objectInfo = readObjectInfo(text)
    infoHash = hash
    change({ objectInfo, catalog: catalogOf(objectInfo), catalogAt: clock.now() })
  }

  function onFailure(error: unknown): void {
    failures++
    const isRefused = error instanceof CallError && error.fault === 'unreachable'
    wasRefused ||= isNobodyThere(error)
    const tries = isRefused ? 1 : options.isBusy() ? TRIES_BUSY : TRIES_IDLE
    const message = error instanceof Error ? error.message : String(error)
    if (state.state === 'ready' && failures >= tries) {
      log.warn({ err: error }, 'an engine is lost')
      change({ state: 'lost', lastError: note(message) })
    } else if (!(isRefused && options.isOurs) && state.lastError?.message !== message) {
      change({ lastError: note(message) })
    }
  }

  async function beat(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await probe()
        const isUneasy = await options.onLook()
        failures = 0
        backoff.reset()
        await bell.wait(
          isUneasy ? Math.min(bounds.pollMaxMs, bounds.probeEveryMs) : bounds.probeEveryMs,
          closing.signal,
        )
      } catch (error) {
        if (closing.signal.aborted) return
        onFailure(error)
        await bell.wait(backoff.nextMs(), closing.signal)
      }
    }
  }

  const ended = beat()

  return {
    state: () => state,
    look: () => bell.ring(),
    heard() {
      if (failures > 0) bell.ring()
    },
    refresh() {
      isInfoDue = true
      bell.ring()
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
      await ended
    },
  }
}

function readDevice({ devices }: JsonObject): Device | null {
  const first = Array.isArray(devices) ? devices[0] : null
  if (!isJsonObject(first)) return null
  const bytes = (value: unknown) => (typeof value === 'number' ? value : null)
  return {
    name: toText(first.name) ?? '',
    vramTotalBytes: bytes(first.vram_total),
    vramFreeBytes: bytes(first.vram_free),
  }
}
