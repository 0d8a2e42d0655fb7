/**
 * What budgets count, in the transaction that holds or settles: whoever holds the lock of an account's balance is the only one who reads
 * and writes the counts of its budgets, so parallel work in any number of processes never passes one. Accounts without any cost one
 * look at an index.
 */
import { writeUsd } from '../../../../../lib/text/usd.ts'
import {
  addSpend,
  type Budget,
  type BudgetExcess,
  correctSpend,
  countsAt,
  findBudgetExcess,
  heldAtFor,
  limitAt,
  matchesBudget,
  NO_COUNTS,
  reachShares,
  resetOf,
  spentOf,
} from '../../../../domain/credits/budgets/budget.ts'
import type { BudgetStore } from '../../../../domain/credits/budgets/budget-store.ts'
import { lengthOf } from '../../../../domain/credits/budgets/periods.ts'
import type { ChargeLabels } from '../../../../domain/credits/charges.ts'
import { type Asked, all, defineStore, durable, get, read, run, type Steps } from '../../statements/operation.ts'
import { command, insertInto, query, selectFrom } from '../../statements/statement.ts'
import { budget, creditAccount, labels, ledgerEntry } from '../../tables/credits.ts'
import { encode, integer, omit, pick, shape } from '../../tables/table.ts'

export const BUDGETS = query('budgets.ofAccounts', budget, (words) =>
  selectFrom(budget, `WHERE ${words.isIn('account_id', ':accountIds')}`),
)
export const BUDGETS_OF_HOLDS = query('budgets.ofHolds', budget, (words) => {
  const ofHolds = `(SELECT account_id FROM ledger_hold WHERE ${words.isIn('id', ':holdIds')})`
  return selectFrom(budget, `WHERE account_id ${words.either(`IN ${ofHolds}`, `= ANY (ARRAY${ofHolds})`)}`)
})
const counted = pick(budget, 'accountId', 'id', 'counts')
const PUT_COUNTS = command(
  'budgets.putCounts',
  'UPDATE budget SET counts = :counts WHERE account_id = :accountId AND id = :id',
)
const TELL = command(
  'budgets.tell',
  ({ either }) => `
    INSERT INTO webhook_delivery (${either('id, ', '')}endpoint_id, account_id, type, subject, at, facts, next_at)
    SELECT ${either(`'msg_' || lower(hex(randomblob(16))), `, '')}id, account_id, 'budget.threshold', :subject, :at, :facts, :at
    FROM webhook_endpoint
    WHERE account_id = :accountId AND kind = 'account' AND state = 'enabled'
      AND ${either('instr', 'strpos')}(events, ' budget.threshold ') > 0`,
)

interface Counted {
  readonly accountId: string
  readonly labels: ChargeLabels
  readonly at: number
  readonly micros: number
}

interface Correction {
  readonly accountId: string
  readonly labels: ChargeLabels
  readonly heldAt: number
  readonly at: number
  readonly change: number
}

/** Of budgets that were read under the locks of their accounts. What has changed is written by `toWrites`, once. */
export function createCounting(found: readonly Budget[]) {
  const budgets = new Map(found.map((each) => [each.id, each]))
  const touched = new Map<string, number>()

  const matching = (accountId: string, of: ChargeLabels) =>
    [...budgets.values()].filter((each) => each.accountId === accountId && matchesBudget(each, of))

  function keep(changed: Budget, at: number): void {
    budgets.set(changed.id, changed)
    touched.set(changed.id, at)
  }

  return {
    findExcess({ accountId, labels: of, at, micros }: Counted): BudgetExcess | null {
      for (const each of matching(accountId, of)) {
        const excess = findBudgetExcess(each, heldAtFor(each, at), micros)
        if (excess !== null) return excess
      }
      return null
    },
    /** Returns when it counts as held. */
    add({ accountId, labels: of, at, micros }: Counted): number {
      const all = matching(accountId, of)
      const heldAt = Math.max(at, ...all.map((each) => heldAtFor(each, at)))
      for (const each of all) keep({ ...each, counts: addSpend(each, each.counts, heldAt, micros) }, heldAt)
      return heldAt
    },
    correct({ accountId, labels: of, ...correction }: Correction): void {
      if (correction.change === 0) return
      for (const each of matching(accountId, of)) {
        const counts = correctSpend(each, correction)
        if (counts !== each.counts) keep({ ...each, counts }, correction.at)
      }
    },
    toWrites(): Asked<number>[] {
      return [...touched].flatMap(([id, at]) => {
        const each = budgets.get(id)
        if (each === undefined) return []
        const { reached, counts } = reachShares(each, at)
        const put = run(PUT_COUNTS, encode(counted, { accountId: each.accountId, id, counts }))
        return [put, ...reached.map((share) => run(TELL, toMessage(each, share, at)))]
      })
    },
  }
}

function toMessage(of: Budget, share: number, at: number) {
  const { accountId, id, name, subject, value, counts } = of
  const facts = {
    ...{ budget_id: id, name, subject, value, threshold_percent: share },
    ...{ spent_usd: writeUsd(spentOf(counts)), limit_usd: writeUsd(limitAt(of, at)) },
    resets_at: resetOf(of, counts, at).toISOString(),
  }
  return { accountId, subject: `budget:${id}`, at, facts: JSON.stringify(facts) }
}

// Budgets as their owners make them.

const OWN = 'account_id = :accountId AND id = :id'
const balance = pick(creditAccount, 'accountId')
const LOCK = query('budgets.lockBalance', balance, (words) =>
  selectFrom(creditAccount, `WHERE account_id = :accountId ${words.lock('NO KEY UPDATE')}`, balance),
)
const LIST = query('budgets.list', budget, selectFrom(budget, 'WHERE account_id = :accountId ORDER BY created_at, id'))
const FIND = query('budgets.find', budget, selectFrom(budget, `WHERE ${OWN}`))
const INSERT = command('budgets.insert', insertInto(budget))
const changeable = pick(budget, 'name', 'limitMicros', 'shares', 'isHard', 'raiseMicros', 'raiseUntil', 'changedAt')
const CHANGE = command(
  'budgets.change',
  `UPDATE budget SET name = :name, limit_micros = :limitMicros, shares = :shares, is_hard = :isHard, raise_micros = :raiseMicros,
     raise_until = :raiseUntil, changed_at = :changedAt WHERE ${OWN}`,
)
const REMOVE = command('budgets.remove', `DELETE FROM budget WHERE ${OWN}`)

const spent = shape({ ...labels, micros: integer() })
const names = shape(labels).columns
const SPENT = query(
  'budgets.spentSince',
  spent,
  ({ either }) => `
    SELECT ${names}, sum(charged) AS micros FROM ledger_entry ${either('INDEXED BY ledger_entry_period', '')}
    WHERE account_id = :accountId AND at >= :from AND kind IN ('settle', 'refund') GROUP BY ${names}
    UNION ALL
    SELECT ${names}, sum(micros) AS micros FROM ledger_hold WHERE account_id = :accountId AND held_at >= :from GROUP BY ${names}`,
)

/** What was spent in its period before there was a budget. */
function* countSoFar(made: Budget): Steps<Budget> {
  const at = made.createdAt.getTime()
  const empty = countsAt(made, NO_COUNTS, at)
  const from = made.style === 'calendar' ? empty.from : at - lengthOf(made)
  const rows = yield* all(SPENT, { accountId: made.accountId, from })
  const micros = rows.reduce((sum, row) => sum + (matchesBudget(made, row) ? row.micros : 0), 0)
  return { ...made, counts: addSpend(made, empty, at, Math.max(0, micros)) }
}

export const budgetStore = defineStore<BudgetStore>('budgets', {
  create: durable(function* (made, max) {
    const { accountId } = made
    if ((yield* get(LOCK, { accountId })) === undefined) return { outcome: 'unmetered' }
    if ((yield* all(LIST, { accountId })).length >= max) return { outcome: 'too_many' }
    const complete = yield* countSoFar(made)
    yield* run(INSERT, encode(budget, complete))
    return { outcome: 'created', budget: complete }
  }),
  list: read(function* (accountId) {
    return yield* all(LIST, { accountId })
  }),
  find: read(function* (accountId, id) {
    return (yield* get(FIND, { accountId, id })) ?? null
  }),
  change: durable(function* (accountId, id, change, at) {
    yield* get(LOCK, { accountId })
    const known = yield* get(FIND, { accountId, id })
    if (known === undefined) return null
    const changed = { ...known, ...change, changedAt: at }
    yield* run(CHANGE, { ...encode(changeable, changed), accountId, id })
    return changed
  }),
  remove: durable(function* (accountId, id) {
    yield* get(LOCK, { accountId })
    return (yield* run(REMOVE, { accountId, id })) > 0
  }),
})

const settled = omit(ledgerEntry, 'seq', 'granted', 'available', 'held', 'memo')
const HELD_AT = query(
  'budgets.heldAt',
  pick(settled, 'at'),
  `SELECT at FROM ledger_entry WHERE reference = :reference AND kind = 'hold'`,
)

/** Money that was given back is room again in the period in which it was held. */
export function* countRefund(refund: Omit<Correction, 'heldAt'> & { readonly reference: string }): Steps<void> {
  const { accountId, reference } = refund
  const budgets = yield* all(BUDGETS, { accountIds: [accountId] })
  const hold = budgets.length === 0 ? undefined : yield* get(HELD_AT, { reference })
  if (hold === undefined) return
  const counting = createCounting(budgets)
  counting.correct({ ...refund, heldAt: hold.at.getTime() })
  for (const write of counting.toWrites()) yield* write
}
