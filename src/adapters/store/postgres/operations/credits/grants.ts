/** What operators do to a ledger: grant credit, take it back, refund what was charged. Each is idempotent by its id. */
import { MAX_MICROS, type Micros } from '../../../../../../lib/text/usd.ts'
import { type ChargeLabels, NO_LABELS } from '../../../../../domain/credits/charges.ts'
import type { Balance, EntryKind, GrantOutcome, RefundOutcome } from '../../../../../domain/credits/ledger.ts'
import { type Queryable, statement } from '../../database/statement.ts'

interface GrantInput {
  readonly id: string
  readonly accountId: string
  readonly micros: Micros
  readonly at: number
  readonly memo: string
}

// The same id may come at the same time for two accounts, or once above and once below zero: neither the balance's row nor the
// entries' index would stop the second.
const LOCK_ID = statement('grants.lockId', 'SELECT pg_advisory_xact_lock(7267303, hashtext($1))')
const LOCK_BALANCE = statement<[available: Micros, held: Micros, floor: Micros]>(
  'grants.lockBalance',
  'SELECT available, held, floor FROM credit_account WHERE account_id = $1 FOR NO KEY UPDATE',
)
const WAS_POSTED = statement<[number]>(
  'grants.wasPosted',
  `SELECT 1 FROM ledger_entry WHERE reference = $1 AND kind IN ('grant', 'revoke')`,
)

export async function grant(tx: Queryable, { id, accountId, micros, at, memo }: GrantInput): Promise<GrantOutcome> {
  const [, locked, posted] = await Promise.all([
    tx.run(LOCK_ID, [id]),
    tx.get(LOCK_BALANCE, [accountId]),
    tx.get(WAS_POSTED, [id]),
  ])
  if (locked === undefined) return { outcome: 'unmetered' }
  const [available, held, floor] = locked
  const balance: Balance = { available, held, floor }
  if (posted !== undefined) return { outcome: 'repeated', balance }
  if (!isInBounds(balance, micros)) return { outcome: 'out_of_bounds', balance }
  const kind = micros < 0 ? 'revoke' : 'grant'
  await post(tx, { accountId, kind, reference: id, granted: -micros, available: micros, charged: 0, at, memo })
  return { outcome: 'granted', balance: { ...balance, available: available + micros } }
}

function isInBounds({ available, held, floor }: Balance, micros: Micros): boolean {
  return micros < 0 ? available + micros >= floor : available + held + micros <= MAX_MICROS
}

interface RefundInput {
  readonly holdId: string
  readonly micros: Micros | null
  readonly at: number
  readonly memo: string
}

const LOCK_CHARGED = statement(
  'grants.lockCharged',
  `SELECT 1 FROM credit_account
   WHERE account_id = (SELECT account_id FROM ledger_entry WHERE reference = $1 AND kind = 'settle') FOR NO KEY UPDATE`,
)
const CHARGED = statement<
  [
    kind: 'settle' | 'refund',
    accountId: string,
    charged: Micros,
    pool: string | null,
    model: string | null,
    keyId: string | null,
  ]
>(
  'grants.charged',
  `SELECT kind, account_id, charged, pool, model, key_id FROM ledger_entry WHERE reference = $1 AND kind IN ('settle', 'refund')`,
)

export async function refund(tx: Queryable, { holdId, micros, at, memo }: RefundInput): Promise<RefundOutcome> {
  const [, entries] = await Promise.all([tx.run(LOCK_CHARGED, [holdId]), tx.all(CHARGED, [holdId])])
  const settled = entries.find(([kind]) => kind === 'settle')
  if (settled === undefined) return { outcome: 'not_charged' }
  const [, accountId, charged, pool, model, keyId] = settled
  if (charged === 0) return { outcome: 'not_charged' }
  const refunded = entries.find(([kind]) => kind === 'refund')
  if (refunded !== undefined) return { outcome: 'repeated', accountId, micros: -refunded[2] }
  const back = micros ?? charged
  if (back > charged) return { outcome: 'more_than_charged', charged }
  await post(tx, {
    accountId,
    kind: 'refund',
    reference: holdId,
    granted: 0,
    available: back,
    charged: -back,
    at,
    memo,
    labels: { pool, model, keyId },
  })
  return { outcome: 'refunded', accountId, micros: back }
}

interface Entry {
  readonly accountId: string
  readonly kind: EntryKind
  readonly reference: string
  readonly granted: Micros
  readonly available: Micros
  readonly charged: Micros
  readonly at: number
  readonly memo: string
  readonly labels?: ChargeLabels
}

const POST = statement(
  'grants.post',
  `WITH added AS (UPDATE credit_account SET available = available + $5 WHERE account_id = $1)
   INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo, pool, model, key_id)
   VALUES ($1, $2, $3, $4, $5, 0, $6, $7, $8, $9, $10, $11)`,
)

/** Writes the entry and its part of the balance. */
async function post(tx: Queryable, entry: Entry): Promise<void> {
  const { accountId, kind, reference, granted, available, charged, at, memo, labels = NO_LABELS } = entry
  const { pool, model, keyId } = labels
  await tx.run(POST, [accountId, kind, reference, granted, available, charged, at, memo, pool, model, keyId])
}
