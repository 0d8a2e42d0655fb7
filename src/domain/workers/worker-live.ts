/**
 * What a joined worker tells live, and what it is told. Its events are published here as those of a run in this process would be,
 * once the lease that it names was found to hold the job. It hears of changes of those jobs, and of work in its pools.
 */
import { isUuid } from '../../../lib/ids.ts'
import type { EventBus } from '../events/event-bus.ts'
import type { LiveEvent } from '../events/live-event.ts'
import type { Lease } from '../jobs/job-store.ts'
import type { HeldClaims } from './held-claims.ts'
import { decodeFrame } from './wire/live-frame.ts'
import type { WorkerIdentity } from './worker-keys.ts'
import { toLease, toLeaseId } from './worker-leases.ts'

type LiveMessage =
  | { readonly changed: { readonly job_id: string; readonly version: number } }
  | { readonly work: { readonly pool: string | null } }
  | { readonly flushed: number }

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
}

interface Watched {
  readonly leaseId: string
  readonly accountId: string
}

// As many as one process may run at once.
const MAX_HELD = 4096
// What may wait for a look at a lease.
const MAX_WAITING = 10_000

export function createWorkerLive({ bus, held }: WorkerLiveDeps): WorkerLive {
  return {
    open(worker, send) {
      const watched = new Map<string, Watched>()
      let waiting = 0
      let isOver = false
      let last: Promise<void> = Promise.resolve()

      /** One after the other: an event must not overtake the look at its lease, nor the answer to a flush its events. */
      function later(act: () => void | Promise<void>): void {
        if (waiting >= MAX_WAITING) return
        waiting++
        last = last
          .then(() => (isOver ? undefined : act()))
          .catch(() => {})
          .finally(() => {
            waiting--
          })
      }

      async function watch(named: Lease): Promise<void> {
        if (watched.size >= MAX_HELD) return
        const lease = toLease(worker, named)
        const { job } = await held.mustFind(lease)
        watched.set(job.id, { leaseId: lease.leaseId, accountId: job.accountId })
      }

      function publish(frame: Buffer): void {
        const decoded = decodeFrame(frame)
        const known = decoded === null ? undefined : watched.get(decoded.lease.jobId)
        if (decoded === null || known?.leaseId !== toLeaseId(worker, decoded.lease.leaseId)) return
        bus.publishLive({ jobId: decoded.lease.jobId, accountId: known.accountId, event: decoded.event })
      }

      const stops = [
        bus.onChanged(({ jobId, version }) => {
          if (watched.has(jobId)) send({ changed: { job_id: jobId, version } })
        }),
        bus.onWork((pool) => {
          if (pool === undefined || worker.pools.has(pool)) send({ work: { pool: pool ?? null } })
        }),
      ]
      return {
        take: (frame) => later(() => publish(frame)),
        order(text) {
          const order = readOrder(text)
          if (order === null) return false
          for (const lease of order.hold) later(() => watch(lease))
          later(() => {
            for (const jobId of order.drop) watched.delete(jobId)
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
