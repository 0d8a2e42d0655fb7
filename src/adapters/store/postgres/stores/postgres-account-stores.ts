import type { AccountDirectory, AccountStore } from '../../../../domain/accounts/account-store.ts'
import type { AuditStore } from '../../../../domain/accounts/audit.ts'
import type { KeyStore } from '../../../../domain/accounts/keys/key-store.ts'
import type { UserFileStore } from '../../../../domain/accounts/user-files.ts'
import type { EntryKind, LedgerStore } from '../../../../domain/credits/ledger.ts'
import type { LimitStore } from '../../../../domain/credits/rate-limit.ts'
import type { DeploymentStore } from '../../../../domain/deployments/deployment-store.ts'
import type { IdempotencyStore } from '../../../../domain/idempotency/idempotency-key.ts'
import { grant, refund } from '../operations/credits/grants.ts'
import { findLedgerFaults } from '../operations/credits/ledger-faults.ts'
import { listEntries, listOpenHolds, readBalance, sumUsage } from '../operations/credits/ledger-reads.ts'
import type { StoreParts } from './store-parts.ts'
import { unwritten } from './unwritten.ts'

export const createAccountDirectory = (_: StoreParts) => unwritten<AccountDirectory>('directory')
export const createAccountStore = (_: StoreParts) => unwritten<AccountStore>('accounts')
export const createAuditStore = (_: StoreParts) => unwritten<AuditStore>('audit')
export const createDeploymentStore = (_: StoreParts) => unwritten<DeploymentStore>('deployments')
export const createIdempotencyStore = (_: StoreParts) => unwritten<IdempotencyStore>('keys')
export const createKeyStore = (_: StoreParts) => unwritten<KeyStore>('apiKeys')
export const createLimitStore = (_: StoreParts) => unwritten<LimitStore>('limits')
export const createUserFileStore = (_: StoreParts) => unwritten<UserFileStore>('userFiles')

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
    check: () => chore.transaction(findLedgerFaults, { isSnapshot: true }),
  }
}
