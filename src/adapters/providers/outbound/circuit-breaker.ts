/**
 * Stops calls to a provider that is down, so that callers need not wait for it: after several failures in a row nothing is sent
 * for a while, then one call tries. Only failures of the provider itself count; a refusal is an answer.
 */
import type { Clock } from '../../../../lib/clock.ts'

const FAILURES_TO_OPEN = 8
const OPEN_MS = 15_000

export interface CircuitBreaker {
  /** Milliseconds until the next call may try; 0 when calls may go out. The call that is let through after a pause is the probe. */
  refuseMs(): number
  succeeded(): void
  failed(): void
  readonly isOpen: boolean
}

export function createCircuitBreaker(clock: Clock): CircuitBreaker {
  let failures = 0
  let openUntilMs = 0
  return {
    get isOpen() {
      return failures >= FAILURES_TO_OPEN
    },
    refuseMs() {
      if (failures < FAILURES_TO_OPEN) return 0
      const nowMs = clock.now().getTime()
      if (nowMs < openUntilMs) return openUntilMs - nowMs
      // This caller is the probe; the others wait for its result.
      openUntilMs = nowMs + OPEN_MS
      return 0
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures++
      if (failures >= FAILURES_TO_OPEN) openUntilMs = clock.now().getTime() + OPEN_MS
    },
  }
}
