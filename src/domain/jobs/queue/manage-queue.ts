/**
 * The queue in the hands of owners and operators. A pause keeps new runs from beginning: jobs are accepted and wait, and what runs goes
 * on. A job that waits can be moved inside the queue of its account, held until a time, or let go before it.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { Job } from '../job.ts'
import { noSuchJob } from '../read/job-reader.ts'
import { heldTooLong, mustBeAhead, mustBePriority, PRIORITY_LIMIT } from '../submit/submit-times.ts'
import type { Pause, PauseKey, QueueStore, WaitingChange } from './queue-store.ts'

type Writes = Pick<QueueStore, 'pause' | 'resume' | 'change'>

export interface Queue {
  /** `through`: writes it; left out: the store. For operators it is one that also writes a line of the audit trail. */
  pause(key: PauseKey, reason: string | null, through?: Writes): Promise<Pause>
  /** Harmless where nothing was paused. */
  resume(key: PauseKey, through?: Writes): Promise<void>
  list(): Promise<readonly Pause[]>
  /** What keeps the jobs of an account from being claimed in a pool. */
  pausesOf(accountId: string, pool: string): Promise<readonly Pause[]>
  change(accountId: string, jobId: string, change: WaitingChange, through?: Writes): Promise<Job>
  /** Lets held jobs run whose time has come; returns how many. */
  releaseDue(signal?: AbortSignal): Promise<number>
}

interface QueueDeps {
  readonly store: QueueStore
  readonly bus: Pick<EventBus<never>, 'publishChanged' | 'publishWork'>
  readonly clock: Clock
}

const BATCH = 500
const MAX_REASON_LENGTH = 500

export function createQueue({ store, bus, clock }: QueueDeps): Queue {
  async function change(accountId: string, jobId: string, wish: WaitingChange, through: Writes): Promise<Job> {
    const now = clock.now()
    if (typeof wish.place === 'object') mustBePriority(wish.place.priority)
    mustBeAhead(wish.notBefore ?? null, now)
    const result = await through.change(accountId, jobId, wish, now)
    switch (result?.outcome) {
      case undefined:
        throw noSuchJob()
      case 'not_waiting':
        throw new ServiceError('not_waiting', `the job is ${result.job.status}; only one that waits can be changed`)
      case 'held_too_long':
        throw heldTooLong(result.until)
      case 'no_priority_left':
        throw invalidField(
          'move',
          `needs a priority beyond ${PRIORITY_LIMIT}; give other waiting jobs less extreme ones`,
        )
      case 'changed': {
        const { job } = result
        bus.publishChanged({ jobId, accountId, version: job.version, move: 'returned' })
        bus.publishWork(job.pool)
        return job
      }
    }
  }

  return {
    async pause(key, reason, through = store) {
      if (reason !== null && reason.length > MAX_REASON_LENGTH)
        throw invalidField('reason', `must have at most ${MAX_REASON_LENGTH} characters`)
      const pause = { ...key, reason, pausedAt: clock.now() }
      await through.pause(pause)
      return pause
    },
    async resume(key, through = store) {
      await through.resume(key)
      bus.publishWork()
    },
    list: () => store.listPauses(),
    pausesOf: (accountId, pool) => store.findPauses(accountId, pool),
    change: (accountId, jobId, wish, through = store) => change(accountId, jobId, wish, through),
    async releaseDue(signal) {
      let total = 0
      while (signal?.aborted !== true && (await store.hasDue(clock.now()))) {
        const released = await store.releaseDue(clock.now(), BATCH)
        for (const { jobId, accountId, version } of released)
          bus.publishChanged({ jobId, accountId, version, move: 'returned' })
        if (released.length > 0) bus.publishWork()
        total += released.length
        // The others are being changed just now.
        if (released.length < BATCH) break
      }
      return total
    },
  }
}
