/** Tells the log once that the server is away, and once that it is back: thousands of operations meet the same outage. */
import type { Log } from '../../../../../lib/log.ts'
import { isStoreAway } from '../../../../domain/errors.ts'

export interface OutageLog {
  answered(): void
  failed(error: unknown): void
}

export function createOutageLog(log: Log): OutageLog {
  let isAway = false
  return {
    answered() {
      if (!isAway) return
      isAway = false
      log.info({}, 'the database answers again')
    },
    failed(error) {
      if (isAway || !isStoreAway(error)) return
      isAway = true
      log.error({ err: (error as Error).cause }, 'the database does not answer; requests are refused until it does')
    },
  }
}
