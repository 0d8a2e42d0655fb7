/** The ledger on Postgres. What operators change is written in durable transactions, which may carry an audit line. */
import type { EntryKind, LedgerStore } from '../../../../domain/credits/ledger.ts'
import { grant, refund } from '../operations/credits/grants.ts'
import { readCharges } from '../operations/credits/ledger-charges.ts'
import { findLedgerFaults } from '../operations/credits/ledger-faults.ts'
import { listEntries, listOpenHolds, readBalance, sumUsage } from '../operations/credits/ledger-reads.ts'
import type { StoreParts } from './store-parts.ts'

const ALL_KINDS: readonly EntryKind[] = ['grant', 'revoke', 'hold', 'settle', 'release', 'refund']

export function createLedgerStore({ durable, read, chore }: StoreParts): LedgerStore {
  return {
    balance: (accountId) => readBalance(read, accountId),
    grant: ({ at, ...input }) => durable.transaction((tx) => grant(tx, { ...input, at: at.getTime() })),
    refund: ({ at, ...input }) => durable.transaction((tx) => refund(tx, { ...input, at: at.getTime() })),
    entries: (accountId, { limit, before, kinds = ALL_KINDS }) =>
      listEntries(read, { accountId, limit, before: before ?? Number.MAX_SAFE_INTEGER, kinds }),
    holds: (accountId, limit) => listOpenHolds(read, accountId, limit),
    usage: (accountId, period) => sumUsage(read, accountId, period),
    charges: (query) => readCharges(read, query),
    check: () => chore.transaction(findLedgerFaults, { isSnapshot: true }),
  }
}
