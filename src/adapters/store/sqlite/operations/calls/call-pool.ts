/** The entry of a call in its account's pool, and the money set aside for it: taken and given back together. */
import type { DatabaseSync } from 'node:sqlite'
import type { ChargeLabels } from '../../../../../domain/credits/charges.ts'
import { callHoldId, judgePool, type PoolVerdict } from '../../../call-records.ts'
import { prepareLedger } from '../credits/ledger-holds.ts'
import { prepareRows } from '../statement.ts'

export type Standing = readonly [running: number, committedMicros: number]

export interface PoolLimits {
  readonly maxCalls: number | null
  readonly maxCostlyCalls: number | null
  readonly ceilingMicros: number | null
}

export interface PoolEntry {
  readonly accountId: string
  readonly costly: number
  readonly spendMicros: number
}

type Row = [running: number, costly: number, committedMicros: number]

interface Look {
  readonly verdict: PoolVerdict
  readonly standing: Standing
  /** Whether the account ever had a call. */
  readonly isKnown: boolean
}

interface CallPool {
  look(entry: PoolEntry, limits: PoolLimits): Look
  /** `look`: what was found in the same transaction. */
  enter(entry: PoolEntry, look: Look): Standing
  leave(entry: PoolEntry): void
}

export function prepareCallPool(database: DatabaseSync): CallPool {
  const select = prepareRows<Row>(
    database,
    'SELECT running, costly, committed_micros FROM router_account WHERE account_id = ?',
  )
  const begin = database.prepare(
    'INSERT INTO router_account (account_id, running, costly, committed_micros) VALUES (?1, 1, ?2, ?3)',
  )
  const enter = database.prepare(`
    UPDATE router_account SET running = running + 1, costly = costly + ?2, committed_micros = committed_micros + ?3
    WHERE account_id = ?1`)
  const leave = database.prepare(`
    UPDATE router_account SET running = running - 1, costly = costly - ?2, committed_micros = committed_micros - ?3
    WHERE account_id = ?1`)
  return {
    look({ accountId, costly, spendMicros }, { maxCalls, maxCostlyCalls, ceilingMicros }) {
      const row = select.get(accountId)
      const [running, runningCostly, committed] = row ?? [0, 0, 0]
      const load = { running, costly: runningCostly, committedMicros: committed }
      const limits = { maxCalls, maxCostlyCalls, ceilingMicros }
      const verdict = judgePool(load, { isCostly: costly === 1, spendMicros }, limits)
      return { verdict, standing: [running, committed], isKnown: row !== undefined }
    },
    enter({ accountId, costly, spendMicros }, { isKnown, standing: [running, committed] }) {
      const statement = isKnown ? enter : begin
      statement.run(accountId, costly, spendMicros)
      return [running + 1, committed + spendMicros]
    },
    leave({ accountId, costly, spendMicros }) {
      leave.run(accountId, costly, spendMicros)
    },
  }
}

export function prepareStanding(database: DatabaseSync): (accountId: string) => Standing {
  const select = prepareRows<[number, number]>(
    database,
    'SELECT running, committed_micros FROM router_account WHERE account_id = ?',
  )
  return (accountId) => select.get(accountId) ?? [0, 0]
}

type CanPay = (accountId: string, micros: number) => boolean

interface CallMoney {
  readonly canPay: CanPay
  /** False: the account cannot pay, and nothing happened. */
  hold(call: HeldCall, at: number, labels: ChargeLabels): boolean
  /** What was charged; null when nothing was set aside for it, or the account is not metered. */
  settle(call: HeldCall, charge: { readonly micros: number; readonly memo: string; readonly at: number }): number | null
}

interface HeldCall {
  readonly id: string
  readonly accountId: string
  readonly attempt: number
  /** null: the model is free. */
  readonly holdMicros: number | null
}

export function prepareCallMoney(database: DatabaseSync): CallMoney {
  const ledger = prepareLedger(database)
  return {
    canPay: prepareCanPay(database),
    hold({ id, accountId, attempt, holdMicros }, at, labels) {
      if (holdMicros === null) return true
      return ledger.hold({ holdId: callHoldId(id, attempt), accountId, micros: holdMicros, at, labels })
    },
    settle({ id, attempt, holdMicros }, { micros, memo, at }) {
      if (holdMicros === null) return null
      const holdId = callHoldId(id, attempt)
      // A price that rose while the call waited is not the one that its caller agreed to.
      if (micros > 0) return ledger.settle({ holdId, micros: Math.min(micros, holdMicros), at, memo })
      return ledger.release({ holdId, at, memo }) ? 0 : null
    },
  }
}

/** True for an account that is not metered. */
export function prepareCanPay(database: DatabaseSync): CanPay {
  const cannotPay = prepareRows<[number]>(
    database,
    'SELECT 1 FROM credit_account WHERE account_id = ? AND available - ? < floor',
  )
  return (accountId, micros) => cannotPay.get(accountId, micros) === undefined
}
