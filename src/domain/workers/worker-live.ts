/**
 * The live connection of a joined worker. Its events are published here like those of a run in this process, as long as the lease
 * that they name holds the job; only the last event may arrive after the job's end. In return the worker gets notices of changes of
 * those jobs, and of work in its pools.
 */
import { isUuid } from '../../../lib/ids.ts'
import { isStoreAway } from '../errors.ts'
import type { EventBus, JobMove, Unsubscribe } from '../events/event-bus.ts'
import type { LiveEvent } from '../events/live-event.ts'
import type { Job } from '../jobs/job.ts'
import type { Lease } from '../jobs/job-store.ts'
import type { OutputCheck } from '../jobs/outputs/check-outputs.ts'
import { toHeldEvent } from '../jobs/outputs/hidden-runs.ts'
import { toBounded } from '../jobs/run/run-steps.ts'
import type { Heartbeat } from '../service-nodes/heartbeat.ts'
import { type HeldClaims, toLease, toLeaseId } from './held-claims.ts'
import { decodeFrame } from './wire/live-frame.ts'
import type { WorkerIdentity } from './worker-keys.ts'

type LiveMessage =
  | { readonly changed: { readonly job_id: string; readonly version: number } }
  | { readonly work: { readonly pool: string | null } }
  | { readonly flushed: number }
  | { readonly node: string }

export interface WorkerLiveDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'publishLive' | 'onChanged' | 'onWork'>
  readonly held: HeldClaims
  /** Watchers of the worker's jobs are referred to this process. */
  readonly heartbeat: Pick<Heartbeat, 'nodeId'>
  /** null: watchers see what runs make as they make it. */
  readonly outputCheck: Pick<OutputCheck, 'covers'> | null
}

interface Watched {
  readonly leaseId: string
  readonly accountId: string
  /** The labels of a run of which it is not told what it makes; null: everything is. */
  readonly heldOf: Job['metadata'] | null
  /** Only the last event may still come. */
  isEnded: boolean
  /** The last event, if it came before the notice of the job's end. */
  lastWord: LiveEvent | null
}

// As many as one process may run at once.
const MAX_HELD = 4096
// What may wait for a look at a lease, of one connection and of all that show the same key.
const MAX_WAITING = 10_000
const MAX_WAITING_BYTES = 64 * 1024 * 1024

export class WorkerLive {
  readonly #deps: WorkerLiveDeps
  readonly #waitingBytes = new Map<string, number>()

  constructor(deps: WorkerLiveDeps) {
    this.#deps = deps
  }

  open(worker: WorkerIdentity, send: (message: LiveMessage) => void): LiveSession {
    return new LiveSession({ ...this.#deps, worker, send, hold: (bytes) => this.#hold(worker.keyId, bytes) })
  }

  /** False: no more fits. */
  #hold(keyId: string, bytes: number): boolean {
    const sum = (this.#waitingBytes.get(keyId) ?? 0) + bytes
    if (sum > MAX_WAITING_BYTES) return false
    if (sum > 0) this.#waitingBytes.set(keyId, sum)
    else this.#waitingBytes.delete(keyId)
    return true
  }
}

interface SessionDeps extends WorkerLiveDeps {
  readonly worker: WorkerIdentity
  readonly send: (message: LiveMessage) => void
  /** Of bytes that wait, of all sessions of the key together. False: no more fits. */
  readonly hold: (bytes: number) => boolean
}

class LiveSession {
  readonly #deps: SessionDeps
  readonly #watched = new Map<string, Watched>()
  readonly #stops: readonly Unsubscribe[]
  #waiting = 0
  #isOver = false
  #last: Promise<void> = Promise.resolve()

  constructor(deps: SessionDeps) {
    const { bus, worker, send, heartbeat } = deps
    this.#deps = deps
    this.#stops = [
      bus.onChanged(({ jobId, version, move }) => {
        const known = this.#watched.get(jobId)
        if (known === undefined) return
        send({ changed: { job_id: jobId, version } })
        if (move !== undefined) this.#hearMove(jobId, known, move)
      }),
      bus.onWork((pool) => {
        if (pool === undefined || worker.pools.has(pool)) send({ work: { pool: pool ?? null } })
      }),
    ]
    send({ node: heartbeat.nodeId })
  }

  /** One live event. What cannot be understood, or is not the worker's, is dropped. */
  take(frame: Buffer): void {
    this.#later(() => this.#publish(frame), frame.length)
  }

  /** A message in words; false: it cannot be understood. */
  order(text: string): boolean {
    const order = readOrder(text)
    if (order === null) return false
    for (const lease of order.hold) this.#later(() => this.#watch(lease))
    this.#later(() => {
      // A last event that waits for the end is kept even when the worker no longer follows the job.
      for (const jobId of order.drop) if (this.#watched.get(jobId)?.lastWord === null) this.#watched.delete(jobId)
    })
    const { flush } = order
    if (flush !== null) this.#later(() => this.#deps.send({ flushed: flush }))
    return true
  }

  end(): void {
    this.#isOver = true
    for (const stop of this.#stops) stop()
  }

  /** One after the other: an event must not overtake the look at its lease, nor the answer to a flush its events. */
  #later(act: () => void | Promise<void>, bytes = 0): void {
    if (this.#waiting >= MAX_WAITING || !this.#deps.hold(bytes)) return
    this.#waiting++
    this.#last = this.#last
      .then(() => (this.#isOver ? undefined : act()))
      .catch(() => {})
      .finally(() => {
        this.#waiting--
        this.#deps.hold(-bytes)
      })
  }

  async #watch(named: Lease): Promise<void> {
    const watched = this.#watched
    if (watched.size >= MAX_HELD) {
      for (const [jobId, { lastWord }] of watched) if (lastWord !== null) watched.delete(jobId)
    }
    if (watched.size >= MAX_HELD) return
    const lease = toLease(this.#deps.worker, named)
    const { job } = await this.#deps.held.mustFind(lease)
    const heldOf = this.#deps.outputCheck?.covers(job.metadata) === true ? job.metadata : null
    watched.set(job.id, { leaseId: lease.leaseId, accountId: job.accountId, heldOf, isEnded: false, lastWord: null })
  }

  async #publish(frame: Buffer): Promise<void> {
    const decoded = decodeFrame(frame)
    const bounded = decoded === null ? null : toBounded(decoded.event)
    if (decoded === null || bounded === null) return
    const { lease } = decoded
    const { jobId } = lease
    const known = this.#watched.get(jobId)
    if (known?.leaseId !== toLeaseId(this.#deps.worker, lease.leaseId)) return
    const event = known.heldOf === null ? bounded : toHeldEvent(bounded, known.heldOf)
    if (event === null) return
    const { accountId } = known
    const isLast = isEnd(event)
    if (known.isEnded ? isLast : await this.#isHeld({ jobId, leaseId: known.leaseId })) {
      this.#deps.bus.publishLive({ jobId, accountId, event })
    } else if (isLast) known.lastWord = event
    else this.#watched.delete(jobId)
    if (known.isEnded) this.#watched.delete(jobId)
  }

  /** While the store is away no other worker can take the job. */
  async #isHeld(lease: Lease): Promise<boolean> {
    try {
      await this.#deps.held.mustFind(lease)
      return true
    } catch (error) {
      return isStoreAway(error)
    }
  }

  #hearMove(jobId: string, known: Watched, move: JobMove): void {
    const { held, bus } = this.#deps
    // The lease may be over: the next event has to show it.
    held.forget(known.leaseId)
    if (move !== 'ended') return
    known.isEnded = true
    const { accountId, lastWord } = known
    if (lastWord === null) return
    this.#watched.delete(jobId)
    bus.publishLive({ jobId, accountId, event: lastWord })
  }
}

function isEnd({ type }: LiveEvent): boolean {
  return type === 'succeeded' || type === 'failed' || type === 'interrupted'
}

interface Order {
  readonly hold: readonly Lease[]
  readonly drop: readonly string[]
  readonly flush: number | null
}

const MAX_ORDER_LENGTH = 1024 * 1024

function readOrder(text: string): Order | null {
  if (text.length > MAX_ORDER_LENGTH) return null
  try {
    const { hold = [], drop = [], flush = null } = JSON.parse(text) as Record<string, unknown>
    if (!Array.isArray(hold) || !Array.isArray(drop) || (flush !== null && !Number.isSafeInteger(flush))) return null
    const leases = hold.map((each: { job_id?: unknown; lease_id?: unknown }) => ({
      ...{ jobId: String(each.job_id), leaseId: String(each.lease_id) },
    }))
    if (leases.length > MAX_HELD || !leases.every(({ jobId, leaseId }) => isUuid(jobId) && isUuid(leaseId))) return null
    return { hold: leases, drop: drop.map(String), flush: flush as number | null }
  } catch {
    return null
  }
}
