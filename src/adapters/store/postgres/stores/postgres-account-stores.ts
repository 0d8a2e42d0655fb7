/**
 * The stores around accounts (their records, API keys, request rates, credits, files, the audit log) and deployments. What operators
 * change is written in durable transactions, which may carry an audit line.
 */
import type { AccountDirectory } from '../../../../domain/accounts/account-store.ts'
import type { AuditStore } from '../../../../domain/accounts/audit.ts'
import type { KeyStore } from '../../../../domain/accounts/keys/key-store.ts'
import type { PutOutcome, UserFileInfo, UserFileStore } from '../../../../domain/accounts/user-files.ts'
import type { EntryKind, LedgerStore } from '../../../../domain/credits/ledger.ts'
import type { LimitStore } from '../../../../domain/credits/rate-limit.ts'
import type { DeploymentStore } from '../../../../domain/deployments/deployment-store.ts'
import {
  createAccount,
  enforceLimits,
  findAccount,
  listChangedAccounts,
  replaceAccount,
} from '../operations/accounts/account-records.ts'
import {
  findApiKey,
  insertApiKey,
  listApiKeys,
  listChangedApiKeys,
  revokeApiKey,
  rotateApiKey,
  touchApiKeys,
} from '../operations/accounts/api-key-rows.ts'
import { addAuditLine, listAuditLines } from '../operations/accounts/audited-writes.ts'
import {
  configureDeployment,
  createDeployment,
  listChangedDeployments,
  listDeployments,
  moveDeployment,
  readPoolLoads,
} from '../operations/accounts/deployment-rows.ts'
import { readPoolDemands } from '../operations/accounts/pool-demands.ts'
import { takeRequests } from '../operations/accounts/request-rates.ts'
import { takeWindow } from '../operations/accounts/shared-counters.ts'
import {
  listUserFiles,
  moveUserFile,
  putUserFile,
  readUserFile,
  removeUserFile,
} from '../operations/accounts/user-file-rows.ts'
import { grant, refund } from '../operations/credits/grants.ts'
import { readCharges } from '../operations/credits/ledger-charges.ts'
import { findLedgerFaults } from '../operations/credits/ledger-faults.ts'
import { listEntries, listOpenHolds, readBalance, sumUsage } from '../operations/credits/ledger-reads.ts'
import type { StoreParts } from './store-parts.ts'

export function createAccountDirectory({ durable, read }: StoreParts): AccountDirectory {
  return {
    create: (account, limits) => durable.transaction((tx) => createAccount(tx, account, limits)),
    replace: (account, limits, version) =>
      durable.transaction((tx) => replaceAccount(tx, account, { limits, version })),
    enforce: async (limits) =>
      limits.length === 0 ? undefined : durable.transaction((tx) => enforceLimits(tx, limits), { isRepeatable: true }),
    find: (accountId) => findAccount(read, accountId),
    changedAfter: (version, limit) => listChangedAccounts(read, version, limit),
  }
}

export function createKeyStore({ durable, relaxed, read }: StoreParts): KeyStore {
  return {
    insert: (key) => durable.transaction((tx) => insertApiKey(tx, key)),
    rotate: (secret) => durable.transaction((tx) => rotateApiKey(tx, secret)),
    revoke: (keyId, at) => durable.transaction((tx) => revokeApiKey(tx, keyId, at)),
    touch: async (uses) => (uses.length === 0 ? undefined : touchApiKeys(relaxed, uses)),
    find: (keyId) => findApiKey(read, keyId),
    list: (accountId) => listApiKeys(read, accountId),
    changedAfter: (version, limit) => listChangedApiKeys(read, version, limit),
  }
}

export function createLimitStore({ relaxed }: StoreParts): LimitStore {
  return {
    async takeRequests(accountId, { perMinute, burst }, count, now) {
      const input = { accountId, perMinute, burst, count, now: now.getTime() }
      const { granted, nextAtMs } = await takeRequests(relaxed, input)
      return { granted, nextAt: new Date(nextAtMs) }
    },
    takeWindow: (accountId, rate, count, now) => takeWindow(relaxed, { accountId, ...rate, count, now }),
  }
}

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

export function createDeploymentStore({ durable, read }: StoreParts): DeploymentStore {
  return {
    create: (deployment) => durable.transaction((tx) => createDeployment(tx, deployment)),
    move: (move) => durable.transaction((tx) => moveDeployment(tx, move)),
    configure: (settings) => durable.transaction((tx) => configureDeployment(tx, settings)),
    list: () => listDeployments(read),
    changedAfter: (version, limit) => listChangedDeployments(read, version, limit),
    loads: async (pools) => (pools.length === 0 ? [] : readPoolLoads(read, pools)),
    demands: async (pools) => (pools.length === 0 ? [] : readPoolDemands(read, pools)),
  }
}

function toOutcome<Word extends string>(answer: UserFileInfo | Word): { readonly outcome: Word } | PutOutcome {
  return typeof answer === 'string' ? { outcome: answer } : { outcome: 'stored', file: answer as UserFileInfo }
}

export function createUserFileStore({ durable, read }: StoreParts): UserFileStore {
  return {
    put: async (accountId, file) => toOutcome(await durable.transaction((tx) => putUserFile(tx, accountId, file))),
    read: (accountId, path) => readUserFile(read, accountId, path),
    list: (accountId) => listUserFiles(read, accountId),
    move: async (accountId, move) => toOutcome(await durable.transaction((tx) => moveUserFile(tx, accountId, move))),
    remove: (accountId, path) => durable.transaction((tx) => removeUserFile(tx, accountId, path)),
  }
}

export function createAuditStore({ durable, read }: StoreParts): AuditStore {
  return {
    list: (query) => listAuditLines(read, query),
    note: (entry) => durable.transaction((tx) => addAuditLine(tx, entry)),
  }
}
