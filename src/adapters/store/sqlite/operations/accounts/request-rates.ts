/**
 * A token bucket as one number per account: the moment until which the requests given out so far are paid for by the rate.
 * It may lie in the future by as much as the burst is worth. Whole microseconds, so that nothing drifts.
 */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

interface TakeRequestsInput {
  readonly accountId: string
  readonly perMinute: number
  readonly burst: number
  readonly count: number
  /** Milliseconds. */
  readonly now: number
}

type TakeRequestsAnswer = readonly [granted: number, nextAtMs: number]

const MINUTE_MICROS = 60_000_000

export function prepareTakeRequests(database: DatabaseSync): (input: TakeRequestsInput) => TakeRequestsAnswer {
  const select = prepareRows<[number]>(database, 'SELECT booked_until FROM rate_limit WHERE account_id = ?')
  const book = database.prepare(`
    INSERT INTO rate_limit (account_id, booked_until) VALUES (?1, ?2)
    ON CONFLICT (account_id) DO UPDATE SET booked_until = excluded.booked_until`)
  return ({ accountId, perMinute, burst, count, now }) => {
    // Rounded up: the rate is never exceeded, not even by the rounding.
    const each = Math.ceil(MINUTE_MICROS / perMinute)
    const nowMicros = now * 1000
    const latest = nowMicros + burst * each
    const known = select.get(accountId)?.[0] ?? 0
    // A booking beyond the burst comes from a clock that was set back, or from a burst that was made smaller.
    const booked = Math.min(Math.max(known, nowMicros), latest)
    const granted = Math.min(count, Math.floor((latest - booked) / each))
    const bookedUntil = booked + granted * each
    if (granted > 0 || known > latest) book.run(accountId, bookedUntil)
    return [granted, Math.ceil((bookedUntil - (burst - 1) * each) / 1000)]
  }
}
