/**
 * After this process found no room for what a run made: its engines get no work, with the reason shown, until there is room again. The
 * jobs go back to the queue without having spent an attempt. How much room a job needs is not known before, so with every further
 * refusal more is asked for. Where that much is not there, less is asked for at every look: a job that finds no room on a disk that has
 * some must not hold the others, and fails in the end.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { uptimeMs } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { createBackoff, sleep } from '../../../../lib/waiting/sleep.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'

interface StorageWatchDeps {
  readonly fleet: Pick<Fleet, 'hold'>
  /** Whether so many bytes can be stored; never rejects. */
  hasRoom(bytes: number): Promise<boolean>
  readonly log: Log
  /** The first pause before it looks. */
  readonly retryMs?: number
}

export interface StorageWatch extends AsyncDisposable {
  /** A run of this job found no room. True: the job need not spend an attempt for it. */
  full(jobId: string): boolean
}

const FIRST_BYTES = 1024 ** 2
const MAX_BYTES = 1024 ** 3
const MORE = 4
/** So many returns of one job: by then as much room is asked for as jobs usually need. */
const MAX_RETURNS = 5
const MAX_PAUSE_MS = 30_000
/** While others might find room. */
const MAX_SHORT_PAUSE_MS = 2000
/** A refusal so long after the last one is another matter. */
const CALM_MS = 300_000
const MAX_JOBS = 1000

export function createStorageWatch({ fleet, hasRoom, log, retryMs = 1000 }: StorageWatchDeps): StorageWatch {
  const returns = new BoundedMap<string, number>(MAX_JOBS)
  const over = new AbortController()
  const backoff = createBackoff({ firstMs: retryMs, maxMs: MAX_PAUSE_MS })
  let wantedBytes = FIRST_BYTES
  let calmAtMs = 0
  let watching: Promise<void> | null = null

  async function watch(): Promise<void> {
    log.error({ wantedBytes }, 'the storage is full: no job is taken until it has room')
    fleet.hold('the storage of the service is full; it takes jobs again when there is room')
    for (let isFull = false; ; wantedBytes = Math.max(FIRST_BYTES, wantedBytes / 2)) {
      const pauseMs = backoff.nextMs()
      await sleep(isFull ? pauseMs : Math.min(pauseMs, MAX_SHORT_PAUSE_MS), over.signal)
      if (over.signal.aborted || (await hasRoom(wantedBytes))) break
      isFull = wantedBytes === FIRST_BYTES
    }
    calmAtMs = uptimeMs() + CALM_MS
    watching = null
    fleet.hold(null)
    log.info({}, 'the storage has room again: jobs are taken')
  }

  return {
    full(jobId) {
      const count = (returns.get(jobId) ?? 0) + 1
      returns.set(jobId, count)
      if (watching === null && !over.signal.aborted) {
        const isAgain = uptimeMs() < calmAtMs
        if (!isAgain) backoff.reset()
        wantedBytes = isAgain ? Math.min(MAX_BYTES, wantedBytes * MORE) : FIRST_BYTES
        watching = watch()
      }
      return count <= MAX_RETURNS
    },
    async [Symbol.asyncDispose]() {
      over.abort()
      await watching
    },
  }
}
