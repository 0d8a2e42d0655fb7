/**
 * Holds, for use inside the transaction of any operation: the one that admits work takes a hold, the one that ends it settles
 * or releases it. Each step is idempotent by the hold's id, so an operation that runs again and a job that is ended twice move
 * money once. An account without a balance is unmetered and costs no row.
 *
 * Every step locks the balances that it touches, in the order of the accounts' ids, by a statement of its own: what the next one
 * sees cannot change any more until the commit. They are the last rows that a transaction locks.
 */
import type { Micros } from '../../../../../lib/text/usd.ts'
import type { BudgetExcess } from '../../../../domain/credits/budgets/budget.ts'
import { type ChargeLabels, NO_LABELS } from '../../../../domain/credits/charges.ts'
import { all, run, type Steps, together } from '../../statements/operation.ts'
import { command, query, toRows, type Values } from '../../statements/statement.ts'
import { creditAccount, ledgerHold } from '../../tables/credits.ts'
import { pick, shape, text } from '../../tables/table.ts'
import { BUDGETS, BUDGETS_OF_HOLDS, createCounting } from './budget-counts.ts'

export interface HoldInput {
  /** Such as `job:<id>` or `call:<id>`. */
  readonly holdId: string
  readonly accountId: string
  readonly micros: Micros
  /** No more than that is charged, and nothing for a run that failed. */
  readonly isAgreed?: boolean
  readonly at: number
  /** What it is for: whatever is charged of it says so as well. */
  readonly labels: ChargeLabels
}

/** `micros`: what the work costs, which may be more than was held. Of a release: 0. */
export interface CloseInput {
  readonly kind: 'settle' | 'release'
  readonly holdId: string
  readonly micros: Micros
  readonly at: number
  readonly memo: string
  readonly isFailed?: boolean
}

/** The balances of some accounts, locked until the transaction ends. What is held is written by `write`, once. */
export interface Purses {
  /** Whether the hold would succeed now. */
  canHold(input: HoldInput): boolean
  /** The budget in its way; null: none is. */
  excessOf(input: HoldInput): BudgetExcess | null
  /** false: the account has not enough credit, and nothing is held. */
  hold(input: HoldInput): boolean
  write(): Steps<void>
}

const purse = pick(creditAccount, 'accountId', 'available', 'floor')

const LOCK = query(
  'ledger.lock',
  purse,
  (words) => `SELECT ${purse.columns} FROM credit_account WHERE ${words.isIn('account_id', ':accountIds')}
    ORDER BY account_id ${words.lock('NO KEY UPDATE')}`,
)
const WERE_HELD = query(
  'ledger.wereHeld',
  shape({ reference: text() }),
  (words) => `SELECT reference FROM ledger_entry WHERE ${words.isIn('reference', ':holdIds')} AND kind = 'hold'`,
)
const inputs = {
  ...({ id: 'text', account_id: 'text', kind: 'text', held: 'bigint', charged: 'bigint', at: 'bigint' } as const),
  ...({ memo: 'text', pool: 'text', model: 'text', key_id: 'text' } as const),
  ...({ endpoint: 'text', endpoint_version: 'integer', tag: 'text', is_agreed: 'smallint' } as const),
}
/** Moves what is held of each account: `available` and `held` are sums over the inputs. */
const MOVE = command(
  'ledger.move',
  (words) => `
    UPDATE credit_account SET available = credit_account.available + moved.available, held = credit_account.held + moved.held
    FROM (
      SELECT account_id, CAST(sum(available) AS bigint) AS available, CAST(sum(held) AS bigint) AS held
      FROM ${words.rows(':moves', { account_id: 'text', available: 'bigint', held: 'bigint' })} AS move GROUP BY account_id) AS moved
    WHERE credit_account.account_id = moved.account_id`,
)
const OPEN = command(
  'ledger.open',
  (words) => `
    INSERT INTO ledger_hold (id, account_id, micros, held_at, is_agreed, pool, model, key_id, endpoint, endpoint_version, tag)
    SELECT id, account_id, held, at, is_agreed, pool, model, key_id, endpoint, endpoint_version, tag FROM ${words.rows(':holds', inputs)} AS opened`,
)
const POST = command(
  'ledger.post',
  (words) => `
    INSERT INTO ledger_entry (account_id, kind, reference, granted, available, held, charged, at, memo, pool, model, key_id, endpoint, endpoint_version, tag)
    SELECT account_id, kind, id, 0, -held - charged, held, charged, at, memo, pool, model, key_id, endpoint, endpoint_version, tag
    FROM ${words.rows(':entries', inputs)} AS posted`,
)

interface Entry {
  readonly holdId: string
  readonly accountId: string
  readonly kind: 'hold' | 'settle' | 'release'
  /** What is added to these books; what they do not get back is taken from `available`. */
  readonly held: Micros
  readonly charged: Micros
  readonly at: number
  readonly memo: string
  readonly labels: ChargeLabels
  readonly isAgreed?: boolean
}

function toInput({ holdId, accountId, kind, held, charged, at, memo, labels, isAgreed = false }: Entry) {
  const { pool, model, keyId, endpoint, endpointVersion, tag } = labels
  return {
    ...{ id: holdId, account_id: accountId, kind, held, charged, at, memo, pool, model, key_id: keyId },
    ...{ endpoint, endpoint_version: endpointVersion, tag, is_agreed: Number(isAgreed) },
  }
}

function toMoves(entries: readonly Entry[]): Values {
  return toRows(
    'moves',
    entries.map(({ accountId, held, charged }) => ({ account_id: accountId, available: -held - charged, held })),
  )
}

/** Locks the balances of these holds' accounts. The inputs are what may be held afterwards. */
export function* lockPurses(asked: readonly Pick<HoldInput, 'holdId' | 'accountId'>[]): Steps<Purses> {
  const accountIds = [...new Set(asked.map(({ accountId }) => accountId))]
  const holdIds = asked.map(({ holdId }) => holdId)
  const [locked, wereHeld, budgets] =
    asked.length === 0
      ? [[], [], []]
      : yield* together(all(LOCK, { accountIds }), all(WERE_HELD, { holdIds }), all(BUDGETS, { accountIds }))
  const counting = createCounting(budgets)
  const spare = new Map(locked.map(({ accountId, available, floor }) => [accountId, available - floor]))
  const held = new Set(wereHeld.map(({ reference }) => reference))
  const taken: HoldInput[] = []

  function canHold(input: HoldInput): boolean {
    const { holdId, accountId, micros } = input
    if (held.has(holdId)) return true
    const left = spare.get(accountId)
    return left === undefined || (left >= micros && excessOf(input) === null)
  }

  function excessOf(input: HoldInput): BudgetExcess | null {
    return held.has(input.holdId) || !spare.has(input.accountId) ? null : counting.findExcess(input)
  }

  return {
    canHold,
    excessOf,
    hold(input) {
      const { holdId, accountId, micros } = input
      mustBeAmount(micros)
      if (!canHold(input)) return false
      const left = spare.get(accountId)
      if (left === undefined || held.has(holdId)) return true
      spare.set(accountId, left - micros)
      held.add(holdId)
      taken.push({ ...input, at: counting.add(input) })
      return true
    },
    *write() {
      if (taken.length === 0) return
      const opened = taken.map(
        (input) => ({ ...input, kind: 'hold', held: input.micros, charged: 0, memo: '' }) as const,
      )
      const entries = opened.map((entry) => ({ ...entry, labels: NO_LABELS }))
      yield* together(
        run(MOVE, toMoves(entries)),
        run(OPEN, toRows('holds', opened.map(toInput))),
        run(POST, toRows('entries', entries.map(toInput))),
        ...counting.toWrites(),
      )
    },
  }
}

/** As if each were held after the ones before it: one that cannot be paid leaves its credit to the next. */
export function* holdMany(asked: readonly HoldInput[]): Steps<boolean[]> {
  if (asked.length === 0) return []
  const purses = yield* lockPurses(asked)
  const held = asked.map((input) => purses.hold(input))
  yield* purses.write()
  return held
}

const LOCK_OF_HOLDS = query('ledger.lockOfHolds', purse, (words) => {
  const ofHolds = `(SELECT account_id FROM ledger_hold WHERE ${words.isIn('id', ':holdIds')})`
  return `SELECT ${purse.columns} FROM credit_account WHERE account_id ${words.either(`IN ${ofHolds}`, `= ANY (ARRAY${ofHolds})`)}
    ORDER BY account_id ${words.lock('NO KEY UPDATE')}`
})
const held = ledgerHold
const CLOSE = query(
  'ledger.close',
  held,
  (words) => `DELETE FROM ledger_hold WHERE ${words.isIn('id', ':holdIds')} RETURNING ${held.columns}`,
)

/**
 * Settles some holds and releases others: what each charged, or null where no such hold was open. A price beyond the hold takes from
 * what is available, down to the floor: what the account cannot pay is not charged.
 */
export function* closeMany(asked: readonly CloseInput[]): Steps<(Micros | null)[]> {
  for (const { micros } of asked) mustBeAmount(micros)
  if (asked.length === 0) return []
  const holdIds = asked.map(({ holdId }) => holdId)
  const [locked, budgets, open] = yield* together(
    all(LOCK_OF_HOLDS, { holdIds }),
    all(BUDGETS_OF_HOLDS, { holdIds }),
    all(CLOSE, { holdIds }),
  )
  if (open.length === 0) return asked.map(() => null)
  const spare = new Map(locked.map(({ accountId, available, floor }) => [accountId, Math.max(0, available - floor)]))
  const holds = new Map(open.map((each) => [each.holdId, each]))
  const closed: Entry[] = []
  const counting = createCounting(budgets)
  const answers = asked.map(({ kind: wanted, holdId, micros, at, memo, isFailed = false }) => {
    const found = holds.get(holdId)
    if (found === undefined) return null
    holds.delete(holdId)
    const { accountId, isAgreed, heldAt, holdId: _, micros: __, ...noted } = found
    const atMost = found.micros + (spare.get(accountId) ?? 0)
    const isFree = isAgreed && isFailed
    const kind = isFree ? 'release' : wanted
    const charged = isFree ? 0 : Math.min(micros, isAgreed ? found.micros : atMost)
    spare.set(accountId, atMost - charged)
    counting.correct({ accountId, labels: noted, heldAt: heldAt.getTime(), at, change: charged - found.micros })
    const labels = kind === 'settle' ? noted : NO_LABELS
    closed.push({ kind, holdId, accountId, held: -found.micros, charged, at, memo, labels })
    return charged
  })
  const writes = counting.toWrites()
  yield* together(run(MOVE, toMoves(closed)), run(POST, toRows('entries', closed.map(toInput))), ...writes)
  return answers
}

function mustBeAmount(micros: Micros): void {
  if (!Number.isSafeInteger(micros) || micros < 0) throw new Error(`${micros} is not an amount of micro-dollars.`)
}
