/**
 * What an account, or all of them, spent in a period: one series by day and one table by what the money was for. Both come out of one
 * look at the ledger, so either adds up to the total, and the total to the ledger.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Micros } from '../../../lib/text/usd.ts'
import { beginOfDay, type DateOf, openZone, toDayEdges } from '../../../lib/zoned-days.ts'
import { ServiceError } from '../errors.ts'
import { type ChargeGroup, type ChargeSum, type GroupSum, sumUp, toRest } from './charges.ts'
import type { LedgerStore } from './ledger.ts'

/** As they came; null: left out. */
export interface UsageWish {
  /** A date in the zone, or a moment. Left out: the first day of this month. */
  readonly from: string | null
  /** Not included. Left out: the end of today. */
  readonly to: string | null
  /** An IANA name. Left out: UTC. */
  readonly timeZone: string | null
  readonly by: ChargeGroup
}

export interface UsageReport {
  readonly from: Date
  readonly to: Date
  readonly timeZone: string
  readonly by: ChargeGroup
  readonly total: ChargeSum
  readonly held: Micros
  /** Every day of the period, also those without a charge. */
  readonly days: readonly (ChargeSum & { readonly date: string })[]
  readonly groups: readonly GroupSum[]
  /** What is in no group because there are too many; null: every charge is in one. */
  readonly rest: ChargeSum | null
}

/** `accountId` null: of all accounts. Throws invalid_request. */
export type ReportUsage = (accountId: string | null, wish: UsageWish) => Promise<UsageReport>

const DAY_MS = 86_400_000
const MAX_DAYS = 400
const MAX_GROUPS = 1000
const MAX_ZONE_LENGTH = 64
const DATE = /^\d{4}-\d{2}-\d{2}$/
const NOTHING: ChargeSum = { charged: 0, refunded: 0, count: 0 }

export function createReportUsage(ledger: Pick<LedgerStore, 'charges'>, clock: Clock): ReportUsage {
  return async (accountId, wish) => {
    const { from, to, timeZone, dateOf } = readPeriod(wish, clock.now())
    const edges = toDayEdges(from, to, dateOf)
    const { by } = wish
    const { days, groups, held } = await ledger.charges({ accountId, edges, by, limit: MAX_GROUPS })
    const total = sumUp(days)
    const byPlace = new Map(days.map(({ place, ...sum }) => [place, sum]))
    return {
      ...{ from, to, timeZone, by, total, held, groups },
      days: edges.slice(0, -1).map((edge, place) => ({ date: dateOf(edge), ...(byPlace.get(place) ?? NOTHING) })),
      rest: by === 'day' ? null : toRest(total, groups),
    }
  }
}

/** Throws invalid_request. */
export function readPeriod({ from, to, timeZone }: Omit<UsageWish, 'by'>, now: Date) {
  const zone = timeZone ?? 'UTC'
  const dateOf = zone.length > MAX_ZONE_LENGTH ? null : openZone(zone)
  if (dateOf === null) throw refused('tz must be the name of a time zone, such as Europe/Vienna')
  const today = dateOf(now)
  const begin = readEdge('from', from ?? `${today.slice(0, 8)}01`, dateOf)
  const end = readEdge('to', to ?? dateAfter(today), dateOf)
  if (begin >= end) throw refused('from must lie before to')
  if (end.getTime() - begin.getTime() > MAX_DAYS * DAY_MS) throw refused(`a period has at most ${MAX_DAYS} days`)
  return { from: begin, to: end, timeZone: zone, dateOf }
}

function readEdge(name: string, text: string, dateOf: DateOf): Date {
  // A date of another calendar than ours, such as the 30th of February, is no moment either.
  const moment = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) && text.length <= 40 ? new Date(text) : new Date(Number.NaN)
  const isReal = !Number.isNaN(moment.getTime()) && (!DATE.test(text) || moment.toISOString().startsWith(text))
  if (!isReal) throw refused(`${name} must be a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z`)
  return DATE.test(text) ? beginOfDay(text, dateOf) : moment
}

function dateAfter(date: string): string {
  return new Date(Date.parse(date) + DAY_MS).toISOString().slice(0, 10)
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}
