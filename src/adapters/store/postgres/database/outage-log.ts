/**
 * Logs once that the server is away, and once that it is back: thousands of operations meet the same outage. A statement
 * that the server ended because it took too long is not an outage, though its caller is asked to try again; otherwise a chore that
 * always ends this way would never be noticed.
 */

import { uptimeMs } from '../../../../../lib/clock.ts'
import type { Log } from '../../../../../lib/log.ts'
import { isStoreAway } from '../../../../domain/errors.ts'
import { isTimeout } from './postgres-error.ts'

export interface OutageLog {
  answered(): void
  failed(error: unknown): void
}

const TELL_EVERY_MS = 60_000

export function createOutageLog(log: Log, now: () => number = uptimeMs): OutageLog {
  let isAway = false
  let toldAtMs = Number.NEGATIVE_INFINITY
  /** Since that was last told. */
  let timeouts = 0

  function tellTimeout(err: unknown): void {
    timeouts += 1
    if (now() - toldAtMs < TELL_EVERY_MS) return
    const { statement } = err as { readonly statement?: string }
    log.warn(
      { err, statement, count: timeouts },
      'the database ended a statement that took too long or waited too long for a lock',
    )
    toldAtMs = now()
    timeouts = 0
  }

  return {
    answered() {
      if (!isAway) return
      isAway = false
      log.info({}, 'the database answers again')
    },
    failed(error) {
      if (!isStoreAway(error)) return
      const { cause } = error as Error
      if (isTimeout(cause)) return tellTimeout(cause)
      if (isAway) return
      isAway = true
      log.error({ err: cause }, 'the database does not answer; requests are refused until it does')
    },
  }
}
