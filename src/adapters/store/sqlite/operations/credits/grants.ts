/** What operators do to a ledger: grant credit, take it back, refund what was charged. Each is idempotent by its id. */
import type { DatabaseSync } from 'node:sqlite'
import { MAX_MICROS, type Micros } from '../../../../../../lib/text/usd.ts'
import type { Balance, GrantOutcome, RefundOutcome } from '../../../../../domain/credits/ledger.ts'
import { prepareRows } from '../statement.ts'
import { preparePost } from './ledger-holds.ts'
import { prepareBalance } from './ledger-reads.ts'

interface GrantInput {
  readonly id: string
  readonly accountId: string
  readonly micros: Micros
  readonly at: number
  readonly memo: string
}

export function prepareGrant(database: DatabaseSync): (input: GrantInput) => GrantOutcome {
  const balanceOf = prepareBalance(database)
  const wasPosted = prepareRows<[number]>(
    database,
    `SELECT 1 FROM ledger_entry WHERE reference = ? AND kind IN ('grant', 'revoke')`,
  )
  const add = database.prepare('UPDATE credit_account SET available = available + ?2 WHERE account_id = ?1')
  const post = preparePost(database)

  function isInBounds({ available, held, floor }: Balance, micros: Micros): boolean {
    return micros < 0 ? available + micros >= floor : available + held + micros <= MAX_MICROS
  }

  return ({ id, accountId, micros, at, memo }) => {
    const balance = balanceOf(accountId)
    if (balance === null) return { outcome: 'unmetered' }
    if (wasPosted.get(id) !== undefined) return { outcome: 'repeated', balance }
    if (!isInBounds(balance, micros)) return { outcome: 'out_of_bounds', balance }
    add.run(accountId, micros)
    const moves = { reference: id, granted: -micros, available: micros, held: 0, charged: 0, at, memo }
    post(accountId, micros < 0 ? 'revoke' : 'grant', moves)
    return { outcome: 'granted', balance: { ...balance, available: balance.available + micros } }
  }
}

interface RefundInput {
  readonly holdId: string
  readonly micros: Micros | null
  readonly at: number
  readonly memo: string
}

export function prepareRefund(database: DatabaseSync): (input: RefundInput) => RefundOutcome {
  const selectCharged = prepareRows<
    [accountId: string, charged: Micros, pool: string | null, model: string | null, keyId: string | null]
  >(database, `SELECT account_id, charged, pool, model, key_id FROM ledger_entry WHERE reference = ? AND kind = ?`)
  const add = database.prepare('UPDATE credit_account SET available = available + ?2 WHERE account_id = ?1')
  const post = preparePost(database)
  return ({ holdId, micros, at, memo }) => {
    const settled = selectCharged.get(holdId, 'settle')
    if (settled === undefined) return { outcome: 'not_charged' }
    const [accountId, charged, pool, model, keyId] = settled
    if (charged === 0) return { outcome: 'not_charged' }
    const refunded = selectCharged.get(holdId, 'refund')
    if (refunded !== undefined) return { outcome: 'repeated', accountId, micros: -refunded[1] }
    const back = micros ?? charged
    if (back > charged) return { outcome: 'more_than_charged', charged }
    add.run(accountId, back)
    const moves = { reference: holdId, granted: 0, available: back, held: 0, charged: -back, at, memo }
    post(accountId, 'refund', moves, { pool, model, keyId })
    return { outcome: 'refunded', accountId, micros: back }
  }
}
