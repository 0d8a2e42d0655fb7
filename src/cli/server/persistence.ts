/** Repeats requests through broken connections and restarts of the server, as long as some of them succeed. */
import { createBackoff } from '../../../lib/waiting/backoff.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'

interface Persistence {
  /** null: the attempt failed, a pause is over, and it may be made again. Throws errors that will not pass, and after too many failures. */
  persist<Answer>(attempt: () => Promise<Answer>): Promise<Answer | null>
  /** Progress was made: failures are counted from zero again. */
  succeed(): void
}

interface PersistenceOptions {
  /** Whether the same attempt may work later. */
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
