/**
 * Closes the credit holds of several pieces of work at once, inside the transaction that ends them: each is settled (charged) or
 * released (given back). Idempotent by the hold's id: one that is closed, or never was, moves nothing.
 */
import type { Micros } from '../../../../../../lib/text/usd.ts'
import { type Queryable, statement } from '../../database/statement.ts'

export interface HoldClose {
  readonly holdId: string
  readonly accountId: string
  /** What the work costs; may be more than was held. 0 gives everything back. */
  readonly micros: Micros
  readonly at: number
  readonly memo: string
}

const LOCK_CREDIT = statement<[accountId: string, available: Micros, floor: Micros]>(
  'credits.lock',
  `SELECT account_id, available, floor FROM credit_account WHERE account_id = ANY($1::text[])
   ORDER BY account_id FOR NO KEY UPDATE`,
)

const CLOSE = statement<[holdId: string, accountId: string, micros: Micros]>(
  'credits.close_holds',
  'DELETE FROM ledger_hold WHERE id = ANY($1::text[]) RETURNING id, account_id, micros',
)

const POST = statement(
  'credits.post_closed',
  `WITH closed AS MATERIALIZED (
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
       WITH ORDINALITY AS c(reference, account_id, kind, held, charged, at, memo, place)),
   posted AS (
     INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo)
     SELECT account_id, kind, reference, 0, held - charged, -held, charged, at, memo FROM closed ORDER BY place)
   UPDATE credit_account SET available = available + total.back, held = credit_account.held - total.held
   FROM (SELECT account_id, sum(held - charged)::bigint AS back, sum(held)::bigint AS held
         FROM closed GROUP BY account_id) AS total
   WHERE credit_account.account_id = total.account_id`,
)

export async function closeHolds(tx: Queryable, closes: readonly HoldClose[]): Promise<void> {
  if (closes.length === 0) return
  const [accounts, holds] = await Promise.all([
    tx.all(LOCK_CREDIT, [[...new Set(closes.map(({ accountId }) => accountId))]]),
    tx.all(CLOSE, [closes.map(({ holdId }) => holdId)]),
  ])
  if (holds.length === 0) return
  const held = new Map(holds.map(([holdId, , micros]) => [holdId, micros]))
  const spare = new Map(accounts.map(([accountId, available, floor]) => [accountId, available - floor]))
  const closed = closes
    .filter(({ holdId }) => held.has(holdId))
    .map((close) => ({ ...close, held: held.get(close.holdId) ?? 0 }))
    .map((close) => ({ ...close, charged: charge(spare, close) }))
  await tx.run(POST, [
    closed.map(({ holdId }) => holdId),
    closed.map(({ accountId }) => accountId),
    closed.map(({ micros }) => (micros === 0 ? 'release' : 'settle')),
    closed.map((close) => close.held),
    closed.map(({ charged }) => charged),
    closed.map(({ at }) => at),
    closed.map(({ memo }) => memo),
  ])
}

/** A price beyond the hold takes from what is available, down to the floor: what the account cannot pay is not charged. */
function charge(
  spare: Map<string, Micros>,
  { accountId, micros, held }: HoldClose & { readonly held: Micros },
): Micros {
  const left = spare.get(accountId) ?? 0
  const charged = Math.min(micros, held + Math.max(0, left))
  spare.set(accountId, left + held - charged)
  return charged
}
