/**
 * The bus of a joined worker: live events and notices over one WebSocket to a node of the service. It reconnects whenever it
 * breaks, to whichever node answers. Events of that time are lost; missed notices are made up for by reading the store afterwards.
 */
import { WebSocket } from 'ws'
import type { Log } from '../../../lib/log.ts'
import { createBackoff, settlesWithin, sleep } from '../../../lib/waiting/sleep.ts'
import type { Lease } from '../../domain/jobs/job-store.ts'
import type { RunBus } from '../../domain/jobs/run/run-deps.ts'
import { encodeFrame } from '../../domain/workers/wire/live-frame.ts'
import type { GatewayClient } from './gateway-client.ts'
import type { HeldJobs } from './held-jobs.ts'

export interface RemoteBus extends RunBus, AsyncDisposable {
  /** Changes of this job are to be heard. */
  watch(lease: Lease): void
  unwatch(jobId: string): void
  /** Resolves when everything told so far has been passed on, or after a moment. */
  flush(): Promise<void>
  /** A change of the job that is heard while this lasts is passed on afterwards: it may be the one that is being made. */
  during<Result>(jobId: string, act: () => Promise<Result>): Promise<Result>
  /** The node of the service that holds the connection; null: none does. */
  liveNode(): string | null
  /** Called when that is another one. */
  onLiveNode(listener: () => void): void
  /** There is work of this pool here. */
  ringWork(pool: string): void
}

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

export function openRemoteBus({ client, held, log }: RemoteBusDeps): RemoteBus {
  const changedListeners = new Set<ChangedListener>()
  const workListeners = new Set<WorkListener>()
  const gapListeners = new Set<() => void>()
  const flushes = new Map<number, () => void>()
  const committing = new Map<string, number>()
  const delayed = new Map<string, number>()
  const ending = new AbortController()
  let socket: WebSocket | null = null
  let flushCount = 0
  let liveNode: string | null = null
  let tellNode = () => {}

  function send(message: object): void {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }

  function tellChanged(jobId: string, version: number): void {
    const accountId = held.ofJob(jobId)?.accountId ?? ''
    for (const listener of changedListeners) listener({ jobId, accountId, version, isRemote: true })
  }

  function hear({ changed, work, flushed, node }: Heard): void {
    if (node !== undefined) {
      liveNode = node
      tellNode()
    }
    if (changed !== undefined) {
      const { job_id: jobId, version } = changed
      if (committing.has(jobId)) delayed.set(jobId, Math.max(version, delayed.get(jobId) ?? 0))
      else tellChanged(jobId, version)
    }
    if (work !== undefined) for (const listener of workListeners) listener(work.pool ?? undefined, true)
    if (flushed !== undefined) flushes.get(flushed)?.()
  }

  /** Resolves when the connection is over. */
  function connect(onOpen: () => void): Promise<void> {
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
      socket = opened
      listen()
      const leases = held.leases()
      if (leases.length > 0) send({ hold: leases.map(toFields) })
      onOpen()
    })
    opened.on('ping', listen)
    opened.on('message', (data: Buffer) => {
      listen()
      try {
        hear(JSON.parse(data.toString('utf8')) as Heard)
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
      ending.signal.removeEventListener('abort', end)
      if (silence !== null) clearTimeout(silence)
      if (socket === opened) socket = null
      liveNode = null
      for (const done of flushes.values()) done()
      resolve()
    })
    ending.signal.addEventListener('abort', end)
    return promise
  }

  async function keepConnected(): Promise<void> {
    const backoff = createBackoff({ firstMs: 250, maxMs: 5000 })
    let wasOpen = false
    while (!ending.signal.aborted) {
      await connect(() => {
        backoff.reset()
        // Whatever was said in between was not heard.
        if (wasOpen) for (const listener of gapListeners) listener()
        wasOpen = true
      })
      await sleep(backoff.nextMs(), ending.signal)
    }
  }

  const loop = keepConnected()
  return {
    publishLive({ jobId, event }) {
      const lease = held.ofJob(jobId)?.lease
      if (lease === undefined || socket?.readyState !== WebSocket.OPEN) return
      const limit = event.type === 'preview' && event.isResult !== true ? MAX_PREVIEW_WAITING_BYTES : MAX_WAITING_BYTES
      if (socket.bufferedAmount > limit) return
      const frame = encodeFrame({ lease, event })
      if (frame !== null) socket.send(frame)
    },
    onChanged: (listener) => subscribe(changedListeners, listener),
    onWork: (listener) => subscribe(workListeners, listener),
    onGap: (listener) => subscribe(gapListeners, listener),
    watch: (lease) => send({ hold: [toFields(lease)] }),
    unwatch: (jobId) => send({ drop: [jobId] }),
    async flush() {
      if (socket?.readyState !== WebSocket.OPEN) return
      const number = ++flushCount
      const { promise, resolve } = Promise.withResolvers<void>()
      flushes.set(number, resolve)
      send({ flush: number })
      await settlesWithin(promise, FLUSH_MS)
      flushes.delete(number)
    },
    async during(jobId, act) {
      committing.set(jobId, (committing.get(jobId) ?? 0) + 1)
      try {
        return await act()
      } finally {
        const left = (committing.get(jobId) ?? 1) - 1
        if (left > 0) committing.set(jobId, left)
        else committing.delete(jobId)
        const version = delayed.get(jobId)
        delayed.delete(jobId)
        // The run takes the answer to its own write first.
        if (version !== undefined) setImmediate(() => tellChanged(jobId, version))
      }
    },
    liveNode: () => liveNode,
    onLiveNode(listener) {
      tellNode = listener
    },
    ringWork(pool) {
      for (const listener of workListeners) listener(pool, false)
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await loop
    },
  }
}

function toFields({ jobId, leaseId }: Lease) {
  return { job_id: jobId, lease_id: leaseId }
}

function subscribe<Listener>(listeners: Set<Listener>, listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
