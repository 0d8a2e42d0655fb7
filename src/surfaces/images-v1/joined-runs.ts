/**
 * Duplicate protection for clients that send a request again after a broken connection and have no key for it: while the jobs of a request
 * are under way in this process, and for a minute after their end unless the answer has arrived, an equal request joins them.
 */
import type { Ticker } from '../../../lib/clock.ts'
import type { EndpointVersion } from '../../domain/endpoints/endpoint.ts'
import type { WaitForRun } from '../../domain/endpoints/wait-for-run.ts'
import type { Job } from '../../domain/jobs/job.ts'

export interface StartedRun {
  readonly version: EndpointVersion
  readonly jobs: readonly Job[]
}

export interface JoinedRun {
  /** Rejects with what the request was refused for: then nothing was accepted. */
  readonly started: Promise<StartedRun>
  /** The jobs once all have ended, or as they are once this process stops or no longer looks. */
  readonly ended: Promise<readonly Job[]>
  /** An answer has arrived. Once it was about the end, the next equal request means another run. */
  delivered(): void
}

export interface JoinedRuns {
  join(key: string, start: () => Promise<StartedRun>): JoinedRun
  close(): void
}

const KEEP_MS = 60_000
// A job that takes longer is forgotten here; it goes on.
const WATCH_MS = 60 * 60 * 1000
// Beyond it requests are not joined.
const MAX_RUNS = 5000

export function createJoinedRuns({
  waits,
  ticker,
}: {
  readonly waits: WaitForRun
  readonly ticker: Pick<Ticker, 'after'>
}): JoinedRuns {
  const runs = new Map<string, JoinedRun>()
  const timers = new Set<() => void>()

  let isClosed = false

  /** Returns a function that prevents it. */
  function later(run: () => void): () => void {
    if (isClosed) return () => {}
    const disarm = ticker.after(KEEP_MS, () => {
      timers.delete(disarm)
      run()
    })
    timers.add(disarm)
    return () => {
      timers.delete(disarm)
      disarm()
    }
  }

  function begin(key: string, start: () => Promise<StartedRun>): JoinedRun {
    const started = start()
    const ended = started.then(({ jobs }) =>
      Promise.all(jobs.map(async (job) => (await waits.wait(job, WATCH_MS)).job)),
    )
    let prevent = () => {}
    const forget = () => {
      prevent()
      if (runs.get(key) === run) runs.delete(key)
    }
    let hasEnded = false
    const run: JoinedRun = { started, ended, delivered: () => void (hasEnded && forget()) }
    ended.then(() => {
      hasEnded = true
      prevent = later(forget)
    }, forget)
    return run
  }

  return {
    join(key, start) {
      const known = runs.get(key)
      if (known !== undefined) return known
      const run = begin(key, start)
      if (runs.size < MAX_RUNS) runs.set(key, run)
      return run
    },
    close() {
      isClosed = true
      waits.close()
      for (const disarm of timers) disarm()
      timers.clear()
    },
  }
}
