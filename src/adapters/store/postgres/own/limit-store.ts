/**
 * Request rates, each taken in one statement. A token bucket is one number per account: the moment until which the requests given out
 * so far are paid for by the rate. It may lie in the future by as much as the burst is worth. Whole microseconds, so that nothing drifts.
 */
import type { LimitStore } from '../../../../domain/credits/rate-limit.ts'
import { defineStore, get, relaxed, run } from '../../statements/operation.ts'
import { command, postgresOnly, query } from '../../statements/statement.ts'
import { rateLimit, rateWindow } from '../../tables/accounts.ts'
import { integer, pick, shape } from '../../tables/table.ts'

const MINUTE_MICROS = 60_000_000

// A booking beyond the burst comes from a clock that was set back, or from a burst that was made smaller.
const TAKE = query(
  'limits.take',
  shape({ granted: integer(), bookedUntil: rateLimit.fields.bookedUntil }),
  postgresOnly(`
    WITH known AS MATERIALIZED (
      SELECT booked_until FROM rate_limit WHERE account_id = :accountId FOR NO KEY UPDATE
    ), booked AS (
      SELECT booked_until AS before, least(greatest(booked_until, :now::bigint), :latest::bigint) AS until FROM known
    ), taken AS MATERIALIZED (
      SELECT before, until, least(:count::bigint, (:latest - until) / :each::bigint) AS granted FROM booked
    ), written AS (
      UPDATE rate_limit SET booked_until = taken.until + taken.granted * :each FROM taken
      WHERE account_id = :accountId AND (taken.granted > 0 OR taken.before > :latest)
    )
    SELECT granted, until + granted * :each AS booked_until FROM taken`),
)
const ADD = command(
  'limits.add',
  postgresOnly(
    'INSERT INTO rate_limit (account_id, booked_until) VALUES (:accountId, 0) ON CONFLICT (account_id) DO NOTHING',
  ),
)

// A window that ends later than one that begins now comes from a clock that was set back, or was made shorter since.
const IS_OPEN = 'kept.ends_at > :now AND kept.ends_at <= :now + :windowMs'
const FIRST = 'least(:count::bigint, :allowance::bigint)'
const MORE = 'greatest(0, least(:count, :allowance - kept.used))'
const TAKE_WINDOW = query(
  'limits.window',
  pick(rateWindow, 'granted', 'endsAt'),
  postgresOnly(`
    INSERT INTO rate_window AS kept (account_id, ends_at, used, granted)
    VALUES (:accountId, :now::bigint + :windowMs::bigint, ${FIRST}, ${FIRST})
    ON CONFLICT (account_id) DO UPDATE SET
      ends_at = CASE WHEN ${IS_OPEN} THEN kept.ends_at ELSE :now + :windowMs END,
      used = CASE WHEN ${IS_OPEN} THEN kept.used + ${MORE} ELSE ${FIRST} END,
      granted = CASE WHEN ${IS_OPEN} THEN ${MORE} ELSE ${FIRST} END
    RETURNING granted, ends_at`),
)

export const limitStore = defineStore<LimitStore>('limits', {
  takeRequests: relaxed(function* (accountId, { perMinute, burst }, count, now) {
    // Rounded up: the rate is never exceeded, not even by the rounding.
    const each = Math.ceil(MINUTE_MICROS / perMinute)
    const nowMicros = now.getTime() * 1000
    const values = { accountId, now: nowMicros, latest: nowMicros + burst * each, each, count }
    let taken = yield* get(TAKE, values)
    while (taken === undefined) {
      yield* run(ADD, { accountId })
      taken = yield* get(TAKE, values)
    }
    return { granted: taken.granted, nextAt: new Date(Math.ceil((taken.bookedUntil - (burst - 1) * each) / 1000)) }
  }),
  takeWindow: relaxed(function* (accountId, { allowance, windowMs }, count, now) {
    const taken = yield* get(TAKE_WINDOW, { accountId, now, windowMs, count, allowance })
    return taken ?? { granted: 0, endsAt: now }
  }),
})
