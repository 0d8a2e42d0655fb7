/** The ledger on SQLite, as the main thread sees it. */
import type { EntryKind, LedgerStore } from '../../../../domain/credits/ledger.ts'
import type { StoreChannels } from './store-channels.ts'

const ALL_KINDS: readonly EntryKind[] = ['grant', 'revoke', 'hold', 'settle', 'release', 'refund']

export function createLedgerStore({ write, read }: StoreChannels): LedgerStore {
  return {
    balance: (accountId) => read.call('balance', accountId),
    grant: ({ at, ...grant }) => write.call('grant', { ...grant, at: at.getTime() }),
    refund: ({ at, ...refund }) => write.call('refund', { ...refund, at: at.getTime() }),
    entries: (accountId, { limit, before, kinds = ALL_KINDS }) =>
      read.call('ledgerEntries', {
        ...{ accountId, limit },
        before: before ?? Number.MAX_SAFE_INTEGER,
        kinds: JSON.stringify(kinds),
      }),
    holds: (accountId, limit) => read.call('openHolds', { accountId, limit }),
    usage: (accountId, { from, to }) => read.call('usage', { accountId, from: from.getTime(), to: to.getTime() }),
    charges: ({ accountId, edges, by, limit }) =>
      read.call('charges', { accountId, by, limit, edges: JSON.stringify(edges.map((edge) => edge.getTime())) }),
    check: () => read.call('checkLedger', null),
  }
}
