/**
 * The stores around accounts (their records, counters, API keys, idempotency keys, request rates, credits, files, the audit
 * log) and deployments, as the main thread sees them: nearly every method only names its operation.
 */

import type { AccountDirectory, AccountStore } from '../../../../domain/accounts/account-store.ts'
import type { AuditStore } from '../../../../domain/accounts/audit.ts'
import type { KeyStore } from '../../../../domain/accounts/keys/key-store.ts'
import type { PutOutcome, UserFileInfo, UserFileStore } from '../../../../domain/accounts/user-files.ts'
import type { EntryKind, LedgerStore } from '../../../../domain/credits/ledger.ts'
import type { LimitStore } from '../../../../domain/credits/rate-limit.ts'
import type { DeploymentStore } from '../../../../domain/deployments/deployment-store.ts'
import type { IdempotencyStore } from '../../../../domain/idempotency/idempotency-key.ts'
import { toAuditFields } from '../operations/accounts/audited-writes.ts'
import type { UserFileRow } from '../operations/accounts/user-file-rows.ts'
import { inSlices, type StoreChannels, UNLIMITED } from './store-channels.ts'

export function createAccountDirectory({ write, read }: StoreChannels): AccountDirectory {
  return {
    create: (account, limits) => write.call('createAccount', { account, limits }),
    replace: (account, limits, version) => write.call('replaceAccount', { account, limits, version: version ?? null }),
    enforce: async (limits) => (limits.length === 0 ? undefined : write.call('enforceLimits', limits)),
    find: (accountId) => read.call('findAccount', accountId),
    changedAfter: (version, limit) => read.call('changedAccounts', { version, limit }),
  }
}

export function createAccountStore({ write, read }: StoreChannels): AccountStore {
  return {
    put: ({ id, maxRunning, maxQueued }) => write.call('putAccount', { id, maxRunning, maxQueued }),
    findUse: (accountId) => read.call('findUse', accountId),
    repairCounters: () => write.call('repairCounters', null),
  }
}

export function createKeyStore({ write, read }: StoreChannels): KeyStore {
  return {
    insert: (key) => write.call('insertApiKey', key),
    rotate: ({ keyId, digest, previousUntil }) =>
      write.call('rotateApiKey', { keyId, digest, previousUntil: previousUntil.getTime() }),
    revoke: (keyId, at) => write.call('revokeApiKey', { keyId, at: at.getTime() }),
    touch: async (uses) => {
      if (uses.length === 0) return
      await write.call(
        'touchApiKeys',
        uses.map(({ keyId, at }) => ({ keyId, at: at.getTime() })),
      )
    },
    find: (keyId) => read.call('findApiKey', keyId),
    list: (accountId) => read.call('listApiKeys', accountId),
    changedAfter: (version, limit) => read.call('changedApiKeys', { version, limit }),
  }
}

export function createIdempotencyStore({ write, read }: StoreChannels): IdempotencyStore {
  return {
    findKey: (accountId, key, now) => read.call('findHolder', { accountId, key, now: now.getTime() }),
    sweepKeys: (now) => inSlices(UNLIMITED, (limit) => write.call('sweepKeys', { now: now.getTime(), limit })),
  }
}

export function createLimitStore({ write }: StoreChannels): LimitStore {
  return {
    async takeRequests(accountId, { perMinute, burst }, count, now) {
      const input = { accountId, perMinute, burst, count, now: now.getTime() }
      const [granted, nextAtMs] = await write.call('takeRequests', input)
      return { granted, nextAt: new Date(nextAtMs) }
    },
    async takeWindow(accountId, { allowance, windowMs }, count, now) {
      const input = { accountId, allowance, windowMs, count, now: now.getTime() }
      const [granted, endsAtMs] = await write.call('takeWindow', input)
      return { granted, endsAt: new Date(endsAtMs) }
    },
  }
}

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

export function createDeploymentStore({ write, read }: StoreChannels): DeploymentStore {
  return {
    create: (deployment) => write.call('createDeployment', deployment),
    move: (move) => write.call('moveDeployment', move),
    configure: (settings) => write.call('configureDeployment', settings),
    list: () => read.call('listDeployments', null),
    changedAfter: (version, limit) => read.call('changedDeployments', { version, limit }),
    loads: async (pools) => (pools.length === 0 ? [] : read.call('poolLoads', pools)),
    demands: async (pools) => (pools.length === 0 ? [] : read.call('poolDemands', pools)),
  }
}

function toInfo([path, sizeBytes, createdAt, modifiedAt]: UserFileRow): UserFileInfo {
  return { path, sizeBytes, createdAt: new Date(createdAt), modifiedAt: new Date(modifiedAt) }
}

function toOutcome<Word extends string>(answer: UserFileRow | Word): { outcome: Word } | PutOutcome {
  return typeof answer === 'string' ? { outcome: answer } : { outcome: 'stored', file: toInfo(answer as UserFileRow) }
}

export function createUserFileStore({ write, read }: StoreChannels): UserFileStore {
  return {
    async put(accountId, { path, bytes, overwrite, now, limits }) {
      const input = { accountId, path, bytes, overwrite, now: now.getTime(), ...limits }
      return toOutcome(await write.call('putUserFile', input, bytes.byteLength))
    },
    read: (accountId, path) => read.call('readUserFile', { accountId, path }),
    async list(accountId) {
      const rows = await read.call('listUserFiles', accountId)
      return rows.map(toInfo)
    },
    async move(accountId, move) {
      return toOutcome(await write.call('moveUserFile', { accountId, ...move }))
    },
    remove: (accountId, path) => write.call('removeUserFile', { accountId, path }),
  }
}

export function createAuditStore({ write, read }: StoreChannels): AuditStore {
  return {
    list: (query) => read.call('listAudit', query),
    note: (entry) => write.call('noteAudit', toAuditFields(entry)),
  }
}
