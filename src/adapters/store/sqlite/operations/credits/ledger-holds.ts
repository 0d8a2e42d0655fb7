/**
 * Holds, for use inside the transaction of any operation: the one that admits work takes a hold, the one that ends it settles
 * or releases it. Each step is idempotent by the hold's id, so a batch that runs again and a job that is ended twice move
 * money once. An account without a balance is unmetered and costs no row.
 */

import type { DatabaseSync } from 'node:sqlite'
import type { Micros } from '../../../../../../lib/text/usd.ts'
import { type ChargeLabels, NO_LABELS } from '../../../../../domain/credits/charges.ts'
import type { EntryKind } from '../../../../../domain/credits/ledger.ts'
import type { HoldInput, ReleaseInput, SettleInput } from '../../../rows/hold-inputs.ts'
import { prepareRows } from '../statement.ts'

interface Ledger {
  /** Whether the hold would succeed now. */
  canHold(input: HoldInput): boolean
  /** false: the account has not enough credit, and nothing happened. */
  hold(input: HoldInput): boolean
  /**
   * Charges, gives back the rest of the hold and returns what was charged; null when there is no such open hold. A price
   * beyond the hold takes from what is available, down to the floor: what the account cannot pay is not charged.
   */
  settle(input: SettleInput): Micros | null
  /** Gives everything back; false when there is no such open hold. */
  release(input: ReleaseInput): boolean
}

type HoldRow = [accountId: string, micros: Micros, pool: string | null, model: string | null, keyId: string | null]

export function prepareLedger(database: DatabaseSync): Ledger {
  const post = preparePost(database)
  const wasHeld = prepareRows<[number]>(database, `SELECT 1 FROM ledger_entry WHERE reference = ? AND kind = 'hold'`)
  const isMetered = prepareRows<[number]>(database, 'SELECT 1 FROM credit_account WHERE account_id = ?')
  const take = database.prepare(`
    UPDATE credit_account SET available = available - ?2, held = held + ?2
    WHERE account_id = ?1 AND available - ?2 >= floor`)
  const noteHold = database.prepare(`
    INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo)
    VALUES (?1, 'hold', ?2, 0, -?3, ?3, 0, ?4, '') ON CONFLICT (reference, kind) DO NOTHING`)
  const openHold = database.prepare(
    'INSERT INTO ledger_hold (id, account_id, micros, held_at, pool, model, key_id) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  // Two statements, because rows that a statement changes and returns go through a table of their own.
  const findHold = prepareRows<HoldRow>(
    database,
    'SELECT account_id, micros, pool, model, key_id FROM ledger_hold WHERE id = ?',
  )
  const removeHold = database.prepare('DELETE FROM ledger_hold WHERE id = ?')
  const spare = prepareRows<[Micros]>(
    database,
    'SELECT max(0, available - floor) FROM credit_account WHERE account_id = ?',
  )
  const giveBack = database.prepare(`
    UPDATE credit_account SET available = available + ?2, held = held - ?3 WHERE account_id = ?1`)

  function closeHold(holdId: string): HoldRow | undefined {
    const row = findHold.get(holdId)
    if (row !== undefined) removeHold.run(holdId)
    return row
  }

  function close(
    kind: 'settle' | 'release',
    [accountId, held, pool, model, keyId]: HoldRow,
    charged: Micros,
    rest: Rest,
  ): void {
    giveBack.run(accountId, held - charged, held)
    const labels = kind === 'settle' ? { pool, model, keyId } : NO_LABELS
    post(accountId, kind, { ...rest, granted: 0, available: held - charged, held: -held, charged }, labels)
  }

  const affords = prepareRows<[number]>(
    database,
    'SELECT available - ?2 >= floor FROM credit_account WHERE account_id = ?1',
  )

  return {
    canHold: ({ holdId, accountId, micros }) =>
      affords.get(accountId, micros)?.[0] !== 0 || wasHeld.get(holdId) !== undefined,
    hold({ holdId, accountId, micros, at, labels: { pool, model, keyId } }) {
      mustBeAmount(micros)
      if (take.run(accountId, micros).changes === 0)
        return wasHeld.get(holdId) !== undefined || isMetered.get(accountId) === undefined
      if (noteHold.run(accountId, holdId, micros, at).changes === 0) giveBack.run(accountId, micros, micros)
      else openHold.run(holdId, accountId, micros, at, pool, model, keyId)
      return true
    },
    settle({ holdId, micros, at, memo }) {
      mustBeAmount(micros)
      const row = closeHold(holdId)
      if (row === undefined) return null
      const [accountId, held] = row
      const charged = micros <= held ? micros : Math.min(micros, held + (spare.get(accountId)?.[0] ?? 0))
      close('settle', row, charged, { reference: holdId, at, memo })
      return charged
    },
    release({ holdId, at, memo = '' }) {
      const row = closeHold(holdId)
      if (row === undefined) return false
      close('release', row, 0, { reference: holdId, at, memo })
      return true
    },
  }
}

interface Rest {
  readonly reference: string
  readonly at: number
  readonly memo: string
}

interface Moves extends Rest {
  readonly granted: Micros
  readonly available: Micros
  readonly held: Micros
  readonly charged: Micros
}

/** Writes one entry; the table itself refuses one that does not balance. */
type Post = (accountId: string, kind: EntryKind, moves: Moves, labels?: ChargeLabels) => void

export function preparePost(database: DatabaseSync): Post {
  const insert = database.prepare(`
    INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo, pool, model, key_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  return (accountId, kind, { reference, granted, available, held, charged, at, memo }, labels = NO_LABELS) => {
    const { pool, model, keyId } = labels
    insert.run(accountId, kind, reference, granted, available, held, charged, at, memo, pool, model, keyId)
  }
}

function mustBeAmount(micros: Micros): void {
  if (!Number.isSafeInteger(micros) || micros < 0) throw new Error(`${micros} is not an amount of micro-dollars.`)
}
