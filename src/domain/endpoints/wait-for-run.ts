/**
 * Waits for the end of a job, for callers that want the result in the answer to their call. Bounded per account: beyond the bound nobody
 * is refused, but the answer comes at once.
 */
import type { Ticker } from '../../../lib/clock.ts'
import type { Job } from '../jobs/job.ts'
import type { WatchJob } from '../jobs/read/watch-job.ts'
import { isTerminal } from '../jobs/transitions.ts'

export interface WaitForRun {
  /** `hasEnded` false: the time was over first, the signal came, or too many of this account wait already. */
  wait(job: Job, maxMs: number, signal?: AbortSignal): Promise<Waited>
  /** Everybody is answered at once, from now on. */
  close(): void
}

interface Waited {
  readonly job: Job
  readonly hasEnded: boolean
}

interface WaitDeps {
  readonly watchJob: WatchJob
  readonly ticker: Pick<Ticker, 'after'>
  readonly maxPerAccount?: number
}

const MAX_PER_ACCOUNT = 100

export function createWaitForRun({ watchJob, ticker, maxPerAccount = MAX_PER_ACCOUNT }: WaitDeps): WaitForRun {
  const waiting = new Map<string, number>()
  const open = new Set<() => void>()
  let isClosed = false

  async function watch(job: Job, maxMs: number, signal?: AbortSignal): Promise<Waited> {
    const { promise: ended, resolve: stop } = Promise.withResolvers<void>()
    let newest = job
    const { job: first, stop: unwatch } = await watchJob(job.accountId, job.id, {
      onSnapshot(snapshot) {
        newest = snapshot
        if (isTerminal(snapshot.status)) stop()
      },
      onPreview() {},
      onGone: stop,
    })
    if (first.version >= newest.version) newest = first
    const disarm = ticker.after(maxMs, stop)
    open.add(stop)
    const leave = () => stop()
    signal?.addEventListener('abort', leave)
    if (isClosed || signal?.aborted || isTerminal(newest.status)) stop()
    try {
      await ended
    } finally {
      open.delete(stop)
      signal?.removeEventListener('abort', leave)
      disarm()
      unwatch()
    }
    return { job: newest, hasEnded: isTerminal(newest.status) }
  }

  return {
    async wait(job, maxMs, signal) {
      const held = waiting.get(job.accountId) ?? 0
      if (isTerminal(job.status) || isClosed || held >= maxPerAccount) return { job, hasEnded: isTerminal(job.status) }
      waiting.set(job.accountId, held + 1)
      try {
        return await watch(job, maxMs, signal)
      } finally {
        const left = (waiting.get(job.accountId) ?? 1) - 1
        if (left === 0) waiting.delete(job.accountId)
        else waiting.set(job.accountId, left)
      }
    },
    close() {
      isClosed = true
      for (const stop of open) stop()
    },
  }
}
