/**
 * What background work does while the store is away: it waits and tries again. Requests do not come here; they are
 * refused with `store_unavailable`, and their callers decide.
 */
import { createBackoff, sleep } from '../../lib/waiting/sleep.ts'
import { isStoreAway } from './errors.ts'

// Long enough that a database that starts again is not flooded, short enough that work goes on soon after.
const FIRST_MS = 250
const MAX_MS = 4000

/**
 * The result of an operation that may be repeated, once the store is there to answer it. Any other failure ends the wait; so
 * does the signal, with the last refusal.
 */
export async function outlastOutage<Result>(operation: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  const backoff = createBackoff({ firstMs: FIRST_MS, maxMs: MAX_MS })
  while (true) {
    try {
      return await operation()
    } catch (error) {
      if (!isStoreAway(error) || signal.aborted) throw error
      await sleep(backoff.nextMs(), signal)
      if (signal.aborted) throw error
    }
  }
}
