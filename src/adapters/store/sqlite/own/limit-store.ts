/**
 * Request rates. A token bucket is one number per account: the moment until which the requests given out so far are paid for by the
 * rate. It may lie in the future by as much as the burst is worth. Whole microseconds, so that nothing drifts.
 */
import type { LimitStore } from '../../../../domain/credits/rate-limit.ts'
import { defineStore, durable, get, run } from '../../statements/operation.ts'
import { command, query, selectFrom, sqliteOnly, upsertInto } from '../../statements/statement.ts'
import { rateLimit, rateWindow } from '../../tables/accounts.ts'
import { omit } from '../../tables/table.ts'

const MINUTE_MICROS = 60_000_000
const window = omit(rateWindow, 'granted')

const BOOKED = query('limits.booked', rateLimit, sqliteOnly(selectFrom(rateLimit, 'WHERE account_id = :accountId')))
const BOOK = command('limits.book', sqliteOnly(upsertInto(rateLimit)))
const WINDOW = query(
  'limits.openWindow',
  window,
  sqliteOnly(selectFrom(rateWindow, 'WHERE account_id = :accountId', window)),
)
const SET_WINDOW = command('limits.setWindow', sqliteOnly(upsertInto(rateWindow, window)))

export const limitStore = defineStore<LimitStore>('limits', {
  takeRequests: durable(function* (accountId, { perMinute, burst }, count, now) {
    // Rounded up: the rate is never exceeded, not even by the rounding.
    const each = Math.ceil(MINUTE_MICROS / perMinute)
    const nowMicros = now.getTime() * 1000
    const latest = nowMicros + burst * each
    const known = (yield* get(BOOKED, { accountId }))?.bookedUntil ?? 0
    // A booking beyond the burst comes from a clock that was set back, or from a burst that was made smaller.
    const booked = Math.min(Math.max(known, nowMicros), latest)
    const granted = Math.min(count, Math.floor((latest - booked) / each))
    const bookedUntil = booked + granted * each
    if (granted > 0 || known > latest) yield* run(BOOK, { accountId, bookedUntil })
    return { granted, nextAt: new Date(Math.ceil((bookedUntil - (burst - 1) * each) / 1000)) }
  }),
  takeWindow: durable(function* (accountId, { allowance, windowMs }, count, now) {
    const known = yield* get(WINDOW, { accountId })
    const latest = new Date(now.getTime() + windowMs)
    // A window that ends later than one that begins now comes from a clock that was set back, or was made shorter since.
    const isOpen = known !== undefined && known.endsAt > now && known.endsAt <= latest
    const { endsAt, used } = isOpen ? known : { endsAt: latest, used: 0 }
    const granted = Math.max(0, Math.min(count, allowance - used))
    if (granted > 0) yield* run(SET_WINDOW, { accountId, endsAt, used: used + granted })
    return { granted, endsAt }
  }),
})
