/** Sends on through broken lines and restarts of the server, as long as something comes of it now and then. */
import { createBackoff } from '../../../lib/waiting/backoff.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'

interface Persistence {
  /** null: it failed, and after a pause the same may work. Throws what cannot pass, and what has failed for long. */
  persist<Answer>(attempt: () => Promise<Answer>): Promise<Answer | null>
  /** Something has come of it: failures are counted anew. */
  succeed(): void
}

interface PersistenceOptions {
  /** Whether the same may work later. */
  readonly mayPass: (error: unknown) => boolean
  readonly signal: AbortSignal
}

// About five minutes without a single byte.
const MAX_FAILURES = 20
const PAUSES = { firstMs: 250, maxMs: 20_000 }

export function createPersistence({ mayPass, signal }: PersistenceOptions): Persistence {
  const backoff = createBackoff(PAUSES)
  let failures = 0
  return {
    async persist(attempt) {
      try {
        return await attempt()
      } catch (error) {
        signal.throwIfAborted()
        if (!mayPass(error) || ++failures > MAX_FAILURES) throw error
        await sleep(backoff.nextMs(), signal)
        signal.throwIfAborted()
        return null
      }
    },
    succeed() {
      failures = 0
      backoff.reset()
    },
  }
}
