/** What accounts may spend, have spent and have promised, in whole micro-dollars. */
import type { Micros } from '../../../../lib/text/usd.ts'
import type { Budget, BudgetCounts } from '../../../domain/credits/budgets/budget.ts'
import type { EntryKind } from '../../../domain/credits/ledger.ts'
import { flag, integer, json, moment, named, nullable, table, text } from './table.ts'

const micros = () => integer<Micros>()

/** What a charge is for. */
export const labels = {
  ...{ pool: nullable(text()), model: nullable(text()), keyId: nullable(text()) },
  ...{ endpoint: nullable(text()), endpointVersion: nullable(integer('integer')), tag: nullable(text()) },
}

/** Absent for an account that is not metered. */
export const creditAccount = table('credit_account', ['accountId'], {
  accountId: text(),
  available: micros(),
  held: micros(),
  floor: micros(),
  /** The highest balance below which an endpoint is to be told. */
  lowMark: nullable(micros()),
})

/** One balanced move between the four books of an account; nothing is ever changed or removed. */
export const ledgerEntry = table('ledger_entry', ['seq'], {
  seq: integer(),
  accountId: text(),
  kind: text<EntryKind>(),
  reference: text(),
  granted: micros(),
  available: micros(),
  held: micros(),
  charged: micros(),
  at: moment(),
  memo: text(),
  ...labels,
})

/** Holds that are open. A settled or released one is known by its entries. */
export const ledgerHold = table('ledger_hold', ['holdId'], {
  holdId: named('id', text()),
  accountId: text(),
  micros: micros(),
  heldAt: moment(),
  /** No more than what is held is charged, and nothing for a run that failed. */
  isAgreed: flag(),
  ...labels,
})

export const budget = table('budget', ['accountId', 'id'], {
  accountId: text(),
  id: text(),
  name: text(),
  owner: text<Budget['owner']>(),
  subject: text<Budget['subject']>(),
  value: nullable(text()),
  limitMicros: micros(),
  unit: text<Budget['unit']>(),
  style: text<Budget['style']>(),
  timeZone: text(),
  shares: json<readonly number[]>(),
  isHard: flag(),
  raiseMicros: nullable(micros()),
  raiseUntil: nullable(moment()),
  counts: json<BudgetCounts>(),
  createdAt: moment(),
  changedAt: moment(),
})
