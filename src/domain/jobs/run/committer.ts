/**
 * The one writer of a running job. Changes gather while a commit is under way or until the next one is due, so outputs and
 * progress are written together, and a short job needs no commit but its last. Order is kept: outputs are
 * written in the order in which they were added, and always before or with the end.
 */
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { uptimeMs } from '../../../../lib/waiting/uptime.ts'
import type { JobLog, Output, Progress } from '../job.ts'
import type { CommitOutcome, RunChange } from '../job-store.ts'

export interface CommitPace {
  /** Progress is written at most this often. */
  readonly progressEveryMs: number
  /** The first progress of a run comes earlier, but not so early that a short job pays for it. */
  readonly firstProgressMs: number
  /** How long an output waits for others, to be written together with them. */
  readonly outputLingerMs: number
}

interface CommitterDeps {
  readonly pace: CommitPace
  readonly log: Log
  send(change: RunChange): Promise<CommitOutcome>
  readState(): { readonly progress: Progress; readonly outputsReused: boolean }
  /** After every commit but the last. `isDetail`: it wrote only how far the run is. */
  onOutcome(outcome: CommitOutcome, isDetail: boolean): void
  /** Whether trying again after this error can still succeed. */
  mayRetry(error: unknown): boolean
}

export interface Committer {
  addOutput(output: Output): void
  progressed(): void
  finish(finish: NonNullable<RunChange['finish']>, log: JobLog | null): Promise<CommitOutcome>
  /** From here on nothing is written. */
  stop(): void
}

const RETRY_MS = 500
const LINGER_MS_PER_OUTPUT = 0.05

export function createCommitter({ pace, log, send, readState, onOutcome, mayRetry }: CommitterDeps): Committer {
  let outputs: Output[] = []
  let writtenOutputs = 0
  let hasProgress = false
  let isClosed = false
  let inFlight: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null
  let timerAtMs = 0
  let progressAtMs = uptimeMs() + pace.firstProgressMs

  /** Watchers read the whole job after each commit: the more outputs it has, the more of them are written together. */
  function lingerMs(): number {
    return pace.outputLingerMs + writtenOutputs * LINGER_MS_PER_OUTPUT
  }

  function schedule(): void {
    if (isClosed || inFlight !== null || (outputs.length === 0 && !hasProgress)) return
    const nowMs = uptimeMs()
    const dueMs = outputs.length > 0 ? nowMs + lingerMs() : Math.max(nowMs, progressAtMs)
    if (timer !== null) {
      if (timerAtMs <= dueMs) return
      clearTimeout(timer)
    }
    timerAtMs = dueMs
    timer = setTimeout(() => {
      timer = null
      inFlight = flush()
    }, dueMs - nowMs)
  }

  async function flush(): Promise<void> {
    const change = takeChange()
    try {
      onOutcome(await send(change), change.outputs === undefined)
    } catch (error) {
      log.warn({ err: error }, 'a change of a running job could not be written; it is tried again')
      outputs = [...(change.outputs ?? []), ...outputs]
      hasProgress = true
      await sleep(RETRY_MS)
    }
    inFlight = null
    schedule()
  }

  function takeChange(): RunChange {
    const { progress, outputsReused } = readState()
    const change: RunChange = {
      progress,
      ...(outputsReused && { outputsReused }),
      ...(outputs.length > 0 && { outputs }),
    }
    writtenOutputs += outputs.length
    outputs = []
    hasProgress = false
    progressAtMs = uptimeMs() + pace.progressEveryMs
    return change
  }

  function close(): void {
    isClosed = true
    if (timer !== null) clearTimeout(timer)
    timer = null
  }

  return {
    addOutput(output) {
      outputs.push(output)
      schedule()
    },
    progressed() {
      if (hasProgress) return
      hasProgress = true
      schedule()
    },
    async finish(finish, jobLog) {
      close()
      if (inFlight !== null) await inFlight
      const change: RunChange = { ...takeChange(), ...(jobLog !== null && { log: jobLog }), finish }
      while (true) {
        try {
          return await send(change)
        } catch (error) {
          if (!mayRetry(error)) return { outcome: 'lost' }
          log.warn({ err: error }, 'the end of a job could not be written; it is tried again')
          await sleep(RETRY_MS)
        }
      }
    },
    stop: close,
  }
}
