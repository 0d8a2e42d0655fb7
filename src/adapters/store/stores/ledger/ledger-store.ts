/** The ledger as accounts and operators use it: balances, entries, grants and refunds, each idempotent by its id. */
import { MAX_MICROS, type Micros } from '../../../../../lib/text/usd.ts'
import { type ChargeLabels, NO_LABELS } from '../../../../domain/credits/charges.ts'
import type { Balance, EntryKind, LedgerStore } from '../../../../domain/credits/ledger.ts'
import { all, defineStore, durable, get, read, report, run, type Steps, together } from '../../statements/operation.ts'
import { command, insertInto, postgresOnly, query, selectFrom } from '../../statements/statement.ts'
import { creditAccount, ledgerEntry, ledgerHold } from '../../tables/credits.ts'
import { encode, flag, integer, omit, pick, shape } from '../../tables/table.ts'
import { countRefund } from './budget-counts.ts'
import { readCharges } from './charges.ts'
import { checkLedger } from './check-ledger.ts'
import { readStatement } from './statement.ts'
import { readTop, readUsageEntries } from './usage-entries.ts'

const balance = pick(creditAccount, 'available', 'held', 'floor')
const BALANCE = query('ledger.balance', balance, selectFrom(creditAccount, 'WHERE account_id = :accountId', balance))

const ALL_KINDS: readonly EntryKind[] = ['grant', 'revoke', 'hold', 'settle', 'release', 'refund']

const entry = omit(ledgerEntry, 'pool', 'model', 'keyId', 'endpoint', 'endpointVersion', 'tag')
const ENTRIES = query(
  'ledger.entries',
  entry,
  (words) => `SELECT ${entry.columns} FROM ledger_entry ${words.either('INDEXED BY ledger_entry_account', '')}
    WHERE account_id = :accountId AND seq < :before AND ${words.isIn('kind', ':kinds')} ORDER BY seq DESC LIMIT :limit`,
)

const hold = pick(ledgerHold, 'holdId', 'accountId', 'micros', 'heldAt')
const HOLDS = query(
  'ledger.holds',
  hold,
  selectFrom(ledgerHold, 'WHERE account_id = :accountId ORDER BY held_at LIMIT :limit', hold),
)

const count = integer()
const usage = shape({ charged: count, refunded: count, granted: count, settled: count, released: count })
const USAGE = query(
  'ledger.usage',
  usage,
  (words) => `
    SELECT coalesce(sum(charged), 0) AS charged, coalesce(-sum(CASE WHEN kind = 'refund' THEN charged END), 0) AS refunded,
      coalesce(-sum(granted), 0) AS granted, coalesce(sum(CASE kind WHEN 'settle' THEN 1 END), 0) AS settled,
      coalesce(sum(CASE kind WHEN 'release' THEN 1 END), 0) AS released
    FROM ledger_entry ${words.either('INDEXED BY ledger_entry_period', '')}
    WHERE account_id = :accountId AND at >= :from AND at < :to`,
)

// The same id may come at the same time for two accounts, or once above and once below zero: neither the balance's row nor the
// entries' index would stop the second.
const LOCK_ID = command('grants.lockId', postgresOnly('SELECT pg_advisory_xact_lock(7267303, hashtext(:id))'))
const LOCK_BALANCE = query(
  'grants.lockBalance',
  balance,
  (words) =>
    `SELECT ${balance.columns} FROM credit_account WHERE account_id = :accountId ${words.lock('NO KEY UPDATE')}`,
)
const WAS_POSTED = query(
  'grants.wasPosted',
  shape({ wasPosted: flag() }),
  `SELECT 1 AS was_posted FROM ledger_entry WHERE reference = :id AND kind IN ('grant', 'revoke')`,
)
const LOCK_CHARGED = command(
  'grants.lockCharged',
  postgresOnly(`SELECT 1 FROM credit_account
    WHERE account_id = (SELECT account_id FROM ledger_entry WHERE reference = :holdId AND kind = 'settle') FOR NO KEY UPDATE`),
)
const charge = omit(ledgerEntry, 'seq', 'reference', 'granted', 'available', 'held', 'at', 'memo')
const CHARGED = query(
  'grants.charged',
  charge,
  selectFrom(ledgerEntry, `WHERE reference = :holdId AND kind IN ('settle', 'refund')`, charge),
)
const ADD = command(
  'grants.add',
  'UPDATE credit_account SET available = available + :available WHERE account_id = :accountId',
)
const newEntry = omit(ledgerEntry, 'seq')
const POST = command('grants.post', insertInto(ledgerEntry, newEntry))

interface Posted {
  readonly accountId: string
  readonly kind: EntryKind
  readonly reference: string
  readonly granted: Micros
  readonly available: Micros
  readonly charged: Micros
  readonly at: Date
  readonly memo: string
  readonly labels?: ChargeLabels
}

/** Writes the entry and its part of the balance. */
function* post({ labels = NO_LABELS, ...posted }: Posted): Steps<void> {
  const { accountId, available } = posted
  yield* together(run(ADD, { accountId, available }), run(POST, encode(newEntry, { ...posted, held: 0, ...labels })))
}

function isInBounds({ available, held, floor }: Balance, micros: Micros): boolean {
  return micros < 0 ? available + micros >= floor : available + held + micros <= MAX_MICROS
}

export const ledgerStore = defineStore<LedgerStore>('ledger', {
  balance: read(function* (accountId) {
    return (yield* get(BALANCE, { accountId })) ?? null
  }),
  entries: read(function* (accountId, { limit, before, kinds = ALL_KINDS }) {
    return yield* all(ENTRIES, { accountId, limit, before: before ?? Number.MAX_SAFE_INTEGER, kinds })
  }),
  holds: read(function* (accountId, limit) {
    return (yield* all(HOLDS, { accountId, limit })).map(({ holdId, ...rest }) => ({ id: holdId, ...rest }))
  }),
  usage: read(function* (accountId, { from, to }) {
    const [found] = yield* all(USAGE, { accountId, from, to })
    return found ?? { charged: 0, refunded: 0, granted: 0, settled: 0, released: 0 }
  }),
  charges: read(readCharges),
  statement: read(readStatement),
  usageEntries: read(readUsageEntries),
  top: read(readTop),
  check: report(checkLedger, { isSnapshot: true }),
  grant: durable(function* ({ id, accountId, micros, at, memo }) {
    const [, locked, posted] = yield* together(
      run(LOCK_ID, { id }),
      get(LOCK_BALANCE, { accountId }),
      get(WAS_POSTED, { id }),
    )
    if (locked === undefined) return { outcome: 'unmetered' }
    if (posted !== undefined) return { outcome: 'repeated', balance: locked }
    if (!isInBounds(locked, micros)) return { outcome: 'out_of_bounds', balance: locked }
    const kind = micros < 0 ? 'revoke' : 'grant'
    yield* post({ accountId, kind, reference: id, granted: -micros, available: micros, charged: 0, at, memo })
    return { outcome: 'granted', balance: { ...locked, available: locked.available + micros } }
  }),
  refund: durable(function* ({ holdId, micros, at, memo }) {
    const [, entries] = yield* together(run(LOCK_CHARGED, { holdId }), all(CHARGED, { holdId }))
    const settled = entries.find(({ kind }) => kind === 'settle')
    if (settled === undefined || settled.charged === 0) return { outcome: 'not_charged' }
    const { kind: _, accountId, charged, ...labels } = settled
    const refunded = entries.find(({ kind }) => kind === 'refund')
    if (refunded !== undefined) return { outcome: 'repeated', accountId, micros: -refunded.charged }
    const back = micros ?? charged
    if (back > charged) return { outcome: 'more_than_charged', charged }
    const moved = { granted: 0, available: back, charged: -back }
    yield* post({ accountId, kind: 'refund', reference: holdId, ...moved, at, memo, labels })
    yield* countRefund({ accountId, labels, reference: holdId, at: at.getTime(), change: -back })
    return { outcome: 'refunded', accountId, micros: back }
  }),
})
