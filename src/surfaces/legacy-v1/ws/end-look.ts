/**
 * Finds jobs whose end was not announced: a worker may be killed right after its last write, and notices can be lost.
 * Jobs that have not ended as far as is known here are read again every few seconds, and all of them after a gap in the notices.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Ticker } from '../../../../lib/clock.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import type { RunKey } from './run-messages.ts'

interface EndLookDeps {
  readonly ticker: Ticker
  readonly isFollowed: (accountId: string) => boolean
  /** Rejects for a job that is gone. */
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  readonly onEnd: (key: RunKey) => void
}

interface EndLook {
  /** `isOwn`: it runs in this process, which therefore always learns of its end. */
  note(key: RunKey, isOwn: boolean): void
  has(jobId: string): boolean
  forget(jobId: string): void
  /** Notices may have been lost: every job of a followed account is read. */
  lookAtAll(): void
  /** Looks every few seconds from now on. */
  start(): void
  stop(): void
}

interface Unended extends RunKey {
  readonly isOwn: boolean
}

// A job whose end is never told would stay here: the oldest ones make room.
const MAX_UNENDED = 50_000
const LOOK_EVERY_MS = 5000
const READS_AT_ONCE = 16
// Beyond this the next look goes on where this one ended: thousands of waiting jobs must not flood the store.
const MAX_READS_PER_LOOK = 320

export function createEndLook({ ticker, isFollowed, findJob, onEnd }: EndLookDeps): EndLook {
  const unended = new BoundedMap<string, Unended>(MAX_UNENDED)
  let stopTicking: (() => void) | null = null
  let isLooking = false
  let isAllWanted = false

  function waitingForOthers(): readonly Unended[] {
    const found: Unended[] = []
    for (const each of unended.values()) {
      if (each.isOwn || !isFollowed(each.accountId)) continue
      found.push(each)
      if (found.length === MAX_READS_PER_LOOK) break
    }
    return found
  }

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      if (!isAllWanted) await readAll(waitingForOthers())
      while (isAllWanted) {
        isAllWanted = false
        await readAll([...unended.values()].filter(({ accountId }) => isFollowed(accountId)))
      }
    } finally {
      isLooking = false
    }
  }

  async function readAll(jobs: readonly Unended[]): Promise<void> {
    for (let at = 0; at < jobs.length; at += READS_AT_ONCE)
      await Promise.all(jobs.slice(at, at + READS_AT_ONCE).map(readOne))
  }

  async function readOne(key: Unended): Promise<void> {
    const { jobId, accountId } = key
    const hasEnded = await findJob(accountId, jobId).then(({ status }) => isTerminal(status), isGone)
    // It has moved meanwhile.
    if (unended.get(jobId) !== key) return
    if (hasEnded) onEnd({ jobId, accountId })
    else unended.set(jobId, key)
  }

  return {
    note({ jobId, accountId }, isOwn) {
      unended.set(jobId, { jobId, accountId, isOwn })
    },
    has: (jobId) => unended.has(jobId),
    forget: (jobId) => void unended.delete(jobId),
    lookAtAll() {
      isAllWanted = true
      void look()
    },
    start() {
      stopTicking ??= ticker.every(LOOK_EVERY_MS, () => void look())
    },
    stop() {
      stopTicking?.()
      stopTicking = null
    },
  }
}

/** A store that is away is asked again with the next look. */
function isGone(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'not_found'
}
