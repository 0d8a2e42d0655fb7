/**
 * The statement of an account for a month of UTC: what it had, what came in, what its work cost, what it had at the end. It is read off the
 * ledger in one look, so it adds up to it exactly, and the statement of a month begins with what the one before ended with.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Micros } from '../../../lib/text/usd.ts'
import { ServiceError } from '../errors.ts'
import type { ChargedWork } from './charges.ts'

export interface StatementQuery {
  readonly accountId: string
  readonly from: Date
  /** Not included. */
  readonly to: Date
  /** How many lines are told, those that cost most first. */
  readonly limit: number
}

/** Charges and refunds of the month for one thing. */
interface StatementSum {
  /** What was charged, refunds not taken off. */
  readonly charged: Micros
  readonly refunded: Micros
  /** How many were charged. */
  readonly count: number
}

interface StatementLine extends StatementSum {
  readonly work: ChargedWork
  /** Each null where there is none, or where it was not noted. */
  readonly model: string | null
  readonly pool: string | null
  readonly endpoint: string | null
}

/** What an account has is what it may still spend and what is held of it. */
export interface StatementSums extends StatementSum {
  /** What the account had before the first entry of the period. */
  readonly opening: Micros
  readonly granted: Micros
  /** Granted credit that was taken back. */
  readonly revoked: Micros
  /** Of what it had at the end, what was held for work under way, and by how many holds. */
  readonly held: Micros
  readonly holds: number
  readonly lines: readonly StatementLine[]
}

export interface Statement extends StatementSums {
  readonly accountId: string
  /** `2026-01`. */
  readonly month: string
  readonly from: Date
  readonly to: Date
  /** opening + granted - revoked - charged + refunded. */
  readonly closing: Micros
  /** What is in no line because there are too many; null: everything is in one. */
  readonly rest: StatementSum | null
  /** The month is over, for so long that none of its entries is still being written. */
  readonly isFinal: boolean
}

/** `month` null: this one. Throws invalid_request, and not_found for a month to come and an account that is not metered. */
export type ReadStatement = (accountId: string, month: string | null) => Promise<Statement>

const MAX_LINES = 1000
// An entry has the time at which its work ended; a store that was away takes it when it is back.
const SETTLES_WITHIN_MS = 3_600_000
const MONTH = /^(20\d\d)-(0[1-9]|1[0-2])$/

interface StatementLedger {
  statement(query: StatementQuery): Promise<StatementSums | null>
}

export function createReadStatement(ledger: StatementLedger, clock: Clock): ReadStatement {
  return async (accountId, asked) => {
    const now = clock.now()
    const month = asked ?? now.toISOString().slice(0, 7)
    const { from, to } = readMonth(month, now)
    const sums = await ledger.statement({ accountId, from, to, limit: MAX_LINES })
    if (sums === null)
      throw new ServiceError(
        'not_found',
        'there are no statements: the account is not metered, so nothing costs anything',
      )
    const closing = sums.opening + sums.granted - sums.revoked - sums.charged + sums.refunded
    const isFinal = now.getTime() >= to.getTime() + SETTLES_WITHIN_MS
    return { ...sums, accountId, month, from, to, closing, rest: toRest(sums), isFinal }
  }
}

function readMonth(month: string, now: Date): Pick<Statement, 'from' | 'to'> {
  const match = MONTH.exec(month)
  if (match === null) throw new ServiceError('invalid_request', 'month must be a month of UTC such as 2026-01')
  const [year, index] = [Number(match[1]), Number(match[2]) - 1]
  const from = new Date(Date.UTC(year, index))
  if (from > now) throw new ServiceError('not_found', `there is no statement of ${month} yet: the month has not begun`)
  return { from, to: new Date(Date.UTC(year, index + 1)) }
}

function toRest({ charged, refunded, count, lines }: StatementSums): StatementSum | null {
  const rest = lines.reduce<StatementSum>(
    (left, line) => ({
      charged: left.charged - line.charged,
      refunded: left.refunded - line.refunded,
      count: left.count - line.count,
    }),
    { charged, refunded, count },
  )
  return rest.charged === 0 && rest.refunded === 0 && rest.count === 0 ? null : rest
}
