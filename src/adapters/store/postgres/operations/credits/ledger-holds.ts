/**
 * Holds, for use inside the transaction of any operation: the one that admits work takes a hold, the one that ends it settles
 * or releases it. Each step is idempotent by the hold's id, so a transaction that runs again and a job that is ended twice move
 * money once. An account without a balance is unmetered and costs no row.
 *
 * Every step locks the balances that it touches, in the order of the accounts' ids, by a statement of its own: what the next one
 * sees cannot change any more until the commit. They are the last rows that a transaction locks.
 */

import type { Micros } from '../../../../../../lib/text/usd.ts'
import { type ChargeLabels, NO_LABELS } from '../../../../../domain/credits/charges.ts'
import type { HoldInput, ReleaseInput, SettleInput } from '../../../rows/hold-inputs.ts'
import { type Queryable, statement } from '../../database/statement.ts'

/** The balances of some accounts, locked until the transaction ends. What is held is written by `write`, once. */
export interface Purses {
  /** Whether the hold would succeed now. */
  canHold(input: HoldInput): boolean
  /** false: the account has not enough credit, and nothing is held. */
  hold(input: HoldInput): boolean
  write(): Promise<void>
}

const LOCK = statement<[accountId: string, available: Micros, floor: Micros]>(
  'ledger.lock',
  `SELECT account_id, available, floor FROM credit_account WHERE account_id = ANY($1::text[])
   ORDER BY account_id FOR NO KEY UPDATE`,
)
const WERE_HELD = statement<[holdId: string]>(
  'ledger.wereHeld',
  `SELECT reference FROM ledger_entry WHERE reference = ANY($1::text[]) AND kind = 'hold'`,
)
const HOLD = statement(
  'ledger.hold',
  `WITH input AS MATERIALIZED (
     SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[])
       WITH ORDINALITY AS t (id, account_id, micros, at, pool, model, key_id, place)
   ), moved AS (
     UPDATE credit_account SET available = available - s.micros, held = held + s.micros
     FROM (SELECT account_id, sum(micros)::bigint AS micros FROM input GROUP BY account_id) AS s
     WHERE credit_account.account_id = s.account_id
   ), opened AS (
     INSERT INTO ledger_hold (id, account_id, micros, held_at, pool, model, key_id)
     SELECT id, account_id, micros, at, pool, model, key_id FROM input
   )
   INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo)
   SELECT account_id, 'hold', id, 0, -micros, micros, 0, at, '' FROM input ORDER BY place`,
)

/** Locks the balances of these holds' accounts. The inputs are what may be held afterwards. */
export async function lockPurses(
  tx: Queryable,
  inputs: readonly Pick<HoldInput, 'holdId' | 'accountId'>[],
): Promise<Purses> {
  const [locked, wereHeld] = await Promise.all([
    tx.all(LOCK, [[...new Set(inputs.map(({ accountId }) => accountId))]]),
    tx.all(WERE_HELD, [inputs.map(({ holdId }) => holdId)]),
  ])
  const spare = new Map(locked.map(([accountId, available, floor]) => [accountId, available - floor]))
  const held = new Set(wereHeld.map(([holdId]) => holdId))
  const taken: HoldInput[] = []

  function canHold({ holdId, accountId, micros }: HoldInput): boolean {
    return held.has(holdId) || (spare.get(accountId) ?? Number.POSITIVE_INFINITY) >= micros
  }

  return {
    canHold,
    hold(input) {
      const { holdId, accountId, micros } = input
      mustBeAmount(micros)
      if (!canHold(input)) return false
      const left = spare.get(accountId)
      if (left === undefined || held.has(holdId)) return true
      spare.set(accountId, left - micros)
      held.add(holdId)
      taken.push(input)
      return true
    },
    async write() {
      if (taken.length === 0) return
      await tx.run(HOLD, [
        taken.map(({ holdId }) => holdId),
        taken.map(({ accountId }) => accountId),
        taken.map(({ micros }) => micros),
        taken.map(({ at }) => at),
        taken.map(({ labels }) => labels.pool),
        taken.map(({ labels }) => labels.model),
        taken.map(({ labels }) => labels.keyId),
      ])
    },
  }
}

/** Whether the hold would succeed, until the transaction ends. */
export async function canHold(tx: Queryable, input: HoldInput): Promise<boolean> {
  return (await lockPurses(tx, [input])).canHold(input)
}

/** false: the account has not enough credit, and nothing happened. */
export async function hold(tx: Queryable, input: HoldInput): Promise<boolean> {
  const [isHeld = false] = await holdMany(tx, [input])
  return isHeld
}

/** As if each were held after the ones before it: one that cannot be paid leaves its credit to the next. */
export async function holdMany(tx: Queryable, inputs: readonly HoldInput[]): Promise<boolean[]> {
  if (inputs.length === 0) return []
  const purses = await lockPurses(tx, inputs)
  const held = inputs.map((input) => purses.hold(input))
  await purses.write()
  return held
}

/**
 * Charges, gives back the rest of the hold and returns what was charged; null when there is no such open hold. A price beyond
 * the hold takes from what is available, down to the floor: what the account cannot pay is not charged.
 */
export async function settle(tx: Queryable, input: SettleInput): Promise<Micros | null> {
  const [charged = null] = await settleMany(tx, [input])
  return charged
}

export function settleMany(tx: Queryable, inputs: readonly SettleInput[]): Promise<(Micros | null)[]> {
  return closeMany(
    tx,
    inputs.map((input) => ({ kind: 'settle', ...input })),
  )
}

/** Gives everything back; false when there is no such open hold. */
export async function release(tx: Queryable, input: ReleaseInput): Promise<boolean> {
  const [isReleased = false] = await releaseMany(tx, [input])
  return isReleased
}

export async function releaseMany(tx: Queryable, inputs: readonly ReleaseInput[]): Promise<boolean[]> {
  const closed = await closeMany(
    tx,
    inputs.map(({ holdId, at, memo = '' }) => ({ kind: 'release', holdId, micros: 0, at, memo })),
  )
  return closed.map((charged) => charged !== null)
}

/** `micros` of a release is 0. */
export interface CloseInput extends SettleInput {
  readonly kind: 'settle' | 'release'
}

interface ClosedHold extends CloseInput {
  readonly accountId: string
  readonly held: Micros
  readonly charged: Micros
  readonly labels: ChargeLabels
}

const LOCK_OF_HOLDS = statement<[accountId: string, available: Micros, floor: Micros]>(
  'ledger.lockOfHolds',
  `SELECT account_id, available, floor FROM credit_account
   WHERE account_id = ANY (ARRAY(SELECT account_id FROM ledger_hold WHERE id = ANY($1::text[])))
   ORDER BY account_id FOR NO KEY UPDATE`,
)
const CLOSE = statement<
  [holdId: string, accountId: string, micros: Micros, pool: string | null, model: string | null, keyId: string | null]
>(
  'ledger.close',
  'DELETE FROM ledger_hold WHERE id = ANY($1::text[]) RETURNING id, account_id, micros, pool, model, key_id',
)
const GIVE_BACK = statement(
  'ledger.giveBack',
  `WITH input AS MATERIALIZED (
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[],
         $8::text[], $9::text[], $10::text[])
       WITH ORDINALITY AS t (kind, id, account_id, held, charged, at, memo, pool, model, key_id, place)
   ), moved AS (
     UPDATE credit_account SET available = credit_account.available + s.available, held = credit_account.held - s.held
     FROM (SELECT account_id, sum(held - charged)::bigint AS available, sum(held)::bigint AS held FROM input GROUP BY account_id) AS s
     WHERE credit_account.account_id = s.account_id
   )
   INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo, pool, model, key_id)
   SELECT account_id, kind, id, 0, held - charged, -held, charged, at, memo, pool, model, key_id FROM input ORDER BY place`,
)

/** Settles some holds and releases others: what each charged, or null where no such hold was open. */
export async function closeMany(tx: Queryable, inputs: readonly CloseInput[]): Promise<(Micros | null)[]> {
  for (const { micros } of inputs) mustBeAmount(micros)
  if (inputs.length === 0) return []
  const holdIds = [inputs.map(({ holdId }) => holdId)]
  const [locked, open] = await Promise.all([tx.all(LOCK_OF_HOLDS, holdIds), tx.all(CLOSE, holdIds)])
  if (open.length === 0) return inputs.map(() => null)
  const spare = new Map(locked.map(([accountId, available, floor]) => [accountId, Math.max(0, available - floor)]))
  const holds = new Map(
    open.map(([holdId, accountId, micros, pool, model, keyId]) => [
      holdId,
      { accountId, micros, labels: { pool, model, keyId } },
    ]),
  )
  const closed: ClosedHold[] = []
  const answers = inputs.map((input) => {
    const found = holds.get(input.holdId)
    if (found === undefined) return null
    holds.delete(input.holdId)
    const { accountId, micros: held } = found
    const labels = input.kind === 'settle' ? found.labels : NO_LABELS
    const atMost = held + (spare.get(accountId) ?? 0)
    const charged = Math.min(input.micros, atMost)
    spare.set(accountId, atMost - charged)
    closed.push({ ...input, accountId, held, charged, labels })
    return charged
  })
  await tx.run(GIVE_BACK, [
    closed.map(({ kind }) => kind),
    closed.map(({ holdId }) => holdId),
    closed.map(({ accountId }) => accountId),
    closed.map(({ held }) => held),
    closed.map(({ charged }) => charged),
    closed.map(({ at }) => at),
    closed.map(({ memo }) => memo),
    closed.map(({ labels }) => labels.pool),
    closed.map(({ labels }) => labels.model),
    closed.map(({ labels }) => labels.keyId),
  ])
  return answers
}

function mustBeAmount(micros: Micros): void {
  if (!Number.isSafeInteger(micros) || micros < 0) throw new Error(`${micros} is not an amount of micro-dollars.`)
}
