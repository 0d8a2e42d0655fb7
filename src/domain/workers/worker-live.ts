/**
 * The live connection of a joined worker. Its events are published here like those of a run in this process, as long as the lease
 * that they name holds the job; only the last event may arrive after the job's end. In return the worker gets notices of changes of
 * those jobs, and of work in its pools.
 */
import { isUuid } from '../../../lib/ids.ts'
import { isStoreAway } from '../errors.ts'
import type { EventBus, JobMove } from '../events/event-bus.ts'
import type { LiveEvent } from '../events/live-event.ts'
import type { Lease } from '../jobs/job-store.ts'
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

interface LiveSession {
  /** One live event. What cannot be understood, or is not the worker's, is dropped. */
  take(frame: Buffer): void
  /** A message in words; false: it cannot be understood. */
  order(text: string): boolean
  end(): void
}

export interface WorkerLive {
  open(worker: WorkerIdentity, send: (message: LiveMessage) => void): LiveSession
}

export interface WorkerLiveDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'publishLive' | 'onChanged' | 'onWork'>
  readonly held: HeldClaims
  /** Watchers of the worker's jobs are referred to this process. */
  readonly heartbeat: Pick<Heartbeat, 'nodeId'>
}

interface Watched {
  readonly leaseId: string
  readonly accountId: string
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

export function createWorkerLive({ bus, held, heartbeat }: WorkerLiveDeps): WorkerLive {
  const waitingBytes = new Map<string, number>()

  /** False: no more fits. */
  function hold(keyId: string, bytes: number): boolean {
    const sum = (waitingBytes.get(keyId) ?? 0) + bytes
    if (sum > MAX_WAITING_BYTES) return false
    if (sum > 0) waitingBytes.set(keyId, sum)
    else waitingBytes.delete(keyId)
    return true
  }

  return {
    open(worker, send) {
      const watched = new Map<string, Watched>()
      let waiting = 0
      let isOver = false
      let last: Promise<void> = Promise.resolve()

      /** One after the other: an event must not overtake the look at its lease, nor the answer to a flush its events. */
      function later(act: () => void | Promise<void>, bytes = 0): void {
        if (waiting >= MAX_WAITING || !hold(worker.keyId, bytes)) return
        waiting++
        last = last
          .then(() => (isOver ? undefined : act()))
          .catch(() => {})
          .finally(() => {
            waiting--
            hold(worker.keyId, -bytes)
          })
      }

      async function watch(named: Lease): Promise<void> {
        if (watched.size >= MAX_HELD) {
          for (const [jobId, { lastWord }] of watched) if (lastWord !== null) watched.delete(jobId)
        }
        if (watched.size >= MAX_HELD) return
        const lease = toLease(worker, named)
        const { job } = await held.mustFind(lease)
        watched.set(job.id, { leaseId: lease.leaseId, accountId: job.accountId, isEnded: false, lastWord: null })
      }

      async function publish(frame: Buffer): Promise<void> {
        const decoded = decodeFrame(frame)
        const event = decoded === null ? null : toBounded(decoded.event)
        if (decoded === null || event === null) return
        const { lease } = decoded
        const { jobId } = lease
        const known = watched.get(jobId)
        if (known?.leaseId !== toLeaseId(worker, lease.leaseId)) return
        const { accountId } = known
        const isLast = isEnd(event)
        if (known.isEnded ? isLast : await isHeld({ jobId, leaseId: known.leaseId })) {
          bus.publishLive({ jobId, accountId, event })
        } else if (isLast) known.lastWord = event
        else watched.delete(jobId)
        if (known.isEnded) watched.delete(jobId)
      }

      /** While the store is away no other worker can take the job. */
      async function isHeld(lease: Lease): Promise<boolean> {
        try {
          await held.mustFind(lease)
          return true
        } catch (error) {
          return isStoreAway(error)
        }
      }

      function hearMove(jobId: string, known: Watched, move: JobMove): void {
        // The lease may be over: the next event has to show it.
        held.forget(known.leaseId)
        if (move !== 'ended') return
        known.isEnded = true
        const { accountId, lastWord } = known
        if (lastWord === null) return
        watched.delete(jobId)
        bus.publishLive({ jobId, accountId, event: lastWord })
      }

      const stops = [
        bus.onChanged(({ jobId, version, move }) => {
          const known = watched.get(jobId)
          if (known === undefined) return
          send({ changed: { job_id: jobId, version } })
          if (move !== undefined) hearMove(jobId, known, move)
        }),
        bus.onWork((pool) => {
          if (pool === undefined || worker.pools.has(pool)) send({ work: { pool: pool ?? null } })
        }),
      ]
      send({ node: heartbeat.nodeId })
      return {
        take: (frame) => later(() => publish(frame), frame.length),
        order(text) {
          const order = readOrder(text)
          if (order === null) return false
          for (const lease of order.hold) later(() => watch(lease))
          later(() => {
            // A last event that waits for the end is kept even when the worker no longer follows the job.
            for (const jobId of order.drop) if (watched.get(jobId)?.lastWord === null) watched.delete(jobId)
          })
          const { flush } = order
          if (flush !== null) later(() => send({ flushed: flush }))
          return true
        },
        end() {
          isOver = true
          for (const stop of stops) stop()
        },
      }
    },
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
