/** Writes that must not be lost to a store that cannot be reached for a moment. */
import { createBackoff } from '../../../../lib/waiting/backoff.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5000
// With growing pauses about a minute: a database that restarts is back by then.
const MAX_TRIES = 18

/**
 * Repeats a write that failed until it succeeds; throws its last error when the process stops or it failed too often. The write
 * must be harmless to repeat: nobody knows whether one that failed was carried out.
 */
export async function writePersistently<Answer>(write: () => Promise<Answer>, stopping: AbortSignal): Promise<Answer> {
  const backoff = createBackoff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS })
  for (let tries = 1; ; tries++) {
    try {
      return await write()
    } catch (error) {
      if (tries >= MAX_TRIES || stopping.aborted) throw error
      await sleep(backoff.nextMs(), stopping)
    }
  }
}
