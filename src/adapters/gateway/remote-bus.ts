/**
 * The bus of a joined worker: live events and notices over one WebSocket to a node of the service. It reconnects whenever it
 * breaks, to whichever node answers. Events of that time are lost; missed notices are made up for by reading the store afterwards.
 */
import { WebSocket } from 'ws'
import type { Log } from '../../../lib/log.ts'
import { createBackoff, settlesWithin, sleep } from '../../../lib/waiting/sleep.ts'
import type { Unsubscribe } from '../../domain/events/event-bus.ts'
import type { Lease } from '../../domain/jobs/job-store.ts'
import type { RunBus } from '../../domain/jobs/run/run-deps.ts'
import { encodeFrame } from '../../domain/workers/wire/live-frame.ts'
import type { GatewayClient } from './gateway-client.ts'
import type { HeldJobs } from './held-jobs.ts'

interface RemoteBusDeps {
  readonly client: Pick<GatewayClient, 'address' | 'confirm'>
  readonly held: HeldJobs
  readonly log: Log
}

interface Heard {
  readonly changed?: { readonly job_id: string; readonly version: number }
  readonly work?: { readonly pool: string | null }
  readonly flushed?: number
  readonly node?: string
}

// A reader that is slow loses previews first, then everything.
const MAX_PREVIEW_WAITING_BYTES = 2 * 1024 * 1024
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const FLUSH_MS = 1000
// The service asks after 15 s of silence, so twice that means that nobody is there.
const SILENCE_MS = 40_000
const HANDSHAKE_MS = 15_000
const UNAUTHORIZED = 4401

type ChangedListener = Parameters<RunBus['onChanged']>[0]
type WorkListener = Parameters<RunBus['onWork']>[0]

export class RemoteBus implements RunBus, AsyncDisposable {
  readonly #deps: RemoteBusDeps
  readonly #changedListeners = new Set<ChangedListener>()
  readonly #workListeners = new Set<WorkListener>()
  readonly #gapListeners = new Set<() => void>()
  readonly #flushes = new Map<number, () => void>()
  readonly #committing = new Map<string, number>()
  readonly #delayed = new Map<string, number>()
  readonly #ending = new AbortController()
  #socket: WebSocket | null = null
  #flushCount = 0
  #liveNode: string | null = null
  #tellNode = () => {}
  readonly #loop: Promise<void>

  constructor(deps: RemoteBusDeps) {
    this.#deps = deps
    this.#loop = this.#keepConnected()
  }

  publishLive({ jobId, event }: Parameters<RunBus['publishLive']>[0]): void {
    const lease = this.#deps.held.ofJob(jobId)?.lease
    if (lease === undefined || this.#socket?.readyState !== WebSocket.OPEN) return
    const limit = event.type === 'preview' && event.isResult !== true ? MAX_PREVIEW_WAITING_BYTES : MAX_WAITING_BYTES
    if (this.#socket.bufferedAmount > limit) return
    const frame = encodeFrame({ lease, event })
    if (frame !== null) this.#socket.send(frame)
  }

  onChanged(listener: ChangedListener): Unsubscribe {
    return subscribe(this.#changedListeners, listener)
  }

  onWork(listener: WorkListener): Unsubscribe {
    return subscribe(this.#workListeners, listener)
  }

  onGap(listener: () => void): Unsubscribe {
    return subscribe(this.#gapListeners, listener)
  }

  /** Changes of this job are to be heard. */
  watch(lease: Lease): void {
    this.#send({ hold: [toFields(lease)] })
  }

  unwatch(jobId: string): void {
    this.#send({ drop: [jobId] })
  }

  /** Resolves when everything told so far has been passed on, or after a moment. */
  async flush(): Promise<void> {
    if (this.#socket?.readyState !== WebSocket.OPEN) return
    const number = ++this.#flushCount
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#flushes.set(number, resolve)
    this.#send({ flush: number })
    await settlesWithin(promise, FLUSH_MS)
    this.#flushes.delete(number)
  }

  /** A change of the job that is heard while this lasts is passed on afterwards: it may be the one that is being made. */
  async during<Result>(jobId: string, act: () => Promise<Result>): Promise<Result> {
    this.#committing.set(jobId, (this.#committing.get(jobId) ?? 0) + 1)
    try {
      return await act()
    } finally {
      const left = (this.#committing.get(jobId) ?? 1) - 1
      if (left > 0) this.#committing.set(jobId, left)
      else this.#committing.delete(jobId)
      const version = this.#delayed.get(jobId)
      this.#delayed.delete(jobId)
      // The run takes the answer to its own write first.
      if (version !== undefined) setImmediate(() => this.#tellChanged(jobId, version))
    }
  }

  /** The node of the service that holds the connection; null: none does. */
  liveNode(): string | null {
    return this.#liveNode
  }

  /** Called when that is another one. */
  onLiveNode(listener: () => void): void {
    this.#tellNode = listener
  }

  /** There is work of this pool here. */
  ringWork(pool: string): void {
    for (const listener of this.#workListeners) listener(pool, false)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#loop
  }

  #send(message: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message))
  }

  #tellChanged(jobId: string, version: number): void {
    const accountId = this.#deps.held.ofJob(jobId)?.accountId ?? ''
    for (const listener of this.#changedListeners) listener({ jobId, accountId, version, isRemote: true })
  }

  #hear({ changed, work, flushed, node }: Heard): void {
    if (node !== undefined) {
      this.#liveNode = node
      this.#tellNode()
    }
    if (changed !== undefined) {
      const { job_id: jobId, version } = changed
      if (this.#committing.has(jobId)) this.#delayed.set(jobId, Math.max(version, this.#delayed.get(jobId) ?? 0))
      else this.#tellChanged(jobId, version)
    }
    if (work !== undefined) for (const listener of this.#workListeners) listener(work.pool ?? undefined, true)
    if (flushed !== undefined) this.#flushes.get(flushed)?.()
  }

  /** Resolves when the connection is over. */
  #connect(onOpen: () => void): Promise<void> {
    const { client, held, log } = this.#deps
    const { promise, resolve } = Promise.withResolvers<void>()
    const { url, headers } = client.address()
    const opened = new WebSocket(`${url.replace(/^http/, 'ws')}/worker/v1/live`, {
      ...{ headers, handshakeTimeout: HANDSHAKE_MS, perMessageDeflate: false, maxPayload: 1024 * 1024 },
    })
    const end = () => opened.terminate()
    let silence: NodeJS.Timeout | null = null
    const listen = () => {
      if (silence !== null) clearTimeout(silence)
      silence = setTimeout(() => opened.terminate(), SILENCE_MS)
    }
    opened.on('open', () => {
      this.#socket = opened
      listen()
      const leases = held.leases()
      if (leases.length > 0) this.#send({ hold: leases.map(toFields) })
      onOpen()
    })
    opened.on('ping', listen)
    opened.on('message', (data: Buffer) => {
      listen()
      try {
        this.#hear(JSON.parse(data.toString('utf8')) as Heard)
      } catch (error) {
        log.debug({ err: error }, 'a message of the service cannot be understood')
      }
    })
    opened.on('unexpected-response', (request, response) => {
      if (response.statusCode === 401) client.confirm()
      request.destroy()
      opened.terminate()
    })
    opened.on('error', (error) => log.debug({ err: error }, 'the live connection to the service broke'))
    opened.on('close', (code) => {
      if (code === UNAUTHORIZED) client.confirm()
      this.#ending.signal.removeEventListener('abort', end)
      if (silence !== null) clearTimeout(silence)
      if (this.#socket === opened) this.#socket = null
      this.#liveNode = null
      for (const done of this.#flushes.values()) done()
      resolve()
    })
    this.#ending.signal.addEventListener('abort', end)
    return promise
  }

  async #keepConnected(): Promise<void> {
    const backoff = createBackoff({ firstMs: 250, maxMs: 5000 })
    let wasOpen = false
    while (!this.#ending.signal.aborted) {
      await this.#connect(() => {
        backoff.reset()
        // Whatever was said in between was not heard.
        if (wasOpen) for (const listener of this.#gapListeners) listener()
        wasOpen = true
      })
      await sleep(backoff.nextMs(), this.#ending.signal)
    }
  }
}

function toFields({ jobId, leaseId }: Lease) {
  return { job_id: jobId, lease_id: leaseId }
}

function subscribe<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
