/**
 * A token bucket as one number per account: the moment until which the requests given out so far are paid for by the rate.
 * It may lie in the future by as much as the burst is worth. Whole microseconds, so that nothing drifts.
 */
import { type Queryable, statement } from '../../database/statement.ts'

interface TakeRequestsInput {
  readonly accountId: string
  readonly perMinute: number
  readonly burst: number
  readonly count: number
  /** Milliseconds. */
  readonly now: number
}

interface TakenRequests {
  readonly granted: number
  readonly nextAtMs: number
}

const MINUTE_MICROS = 60_000_000

// Values: account, now, the latest possible booking, what a request is worth, how many are asked for.
// A booking beyond the burst comes from a clock that was set back, or from a burst that was made smaller.
const TAKE = statement<[granted: number, bookedUntil: number]>(
  'limits.take',
  `WITH known AS MATERIALIZED (
     SELECT booked_until FROM rate_limit WHERE account_id = $1 FOR NO KEY UPDATE
   ), booked AS (
     SELECT booked_until AS before, least(greatest(booked_until, $2::bigint), $3::bigint) AS until FROM known
   ), taken AS MATERIALIZED (
     SELECT before, until, least($5::bigint, ($3 - until) / $4::bigint) AS granted FROM booked
   ), written AS (
     UPDATE rate_limit SET booked_until = taken.until + taken.granted * $4 FROM taken
     WHERE account_id = $1 AND (taken.granted > 0 OR taken.before > $3)
   )
   SELECT granted, until + granted * $4 FROM taken`,
)
const ADD = statement(
  'limits.add',
  'INSERT INTO rate_limit (account_id, booked_until) VALUES ($1, 0) ON CONFLICT (account_id) DO NOTHING',
)

export async function takeRequests(
  db: Queryable,
  { accountId, perMinute, burst, count, now }: TakeRequestsInput,
): Promise<TakenRequests> {
  // Rounded up: the rate is never exceeded, not even by the rounding.
  const each = Math.ceil(MINUTE_MICROS / perMinute)
  const values = [accountId, now * 1000, now * 1000 + burst * each, each, count]
  let taken = await db.get(TAKE, values)
  while (taken === undefined) {
    await db.run(ADD, [accountId])
    taken = await db.get(TAKE, values)
  }
  const [granted, bookedUntil] = taken
  return { granted, nextAtMs: Math.ceil((bookedUntil - (burst - 1) * each) / 1000) }
}
