/**
 * The keys of an account in its own hands. A key gives no more than the credential that made it has, and whoever asks sees and changes
 * those of its own account alone. Every change leaves an audit line, as one of an operator does.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { AuditEntry } from '../audit.ts'
import { type Caller, ENDPOINT_SCOPES } from '../caller.ts'
import type { ApiKey, StoredKey } from './api-key.ts'
import type { ApiKeys, ShownKey } from './api-keys.ts'
import type { KeyStore } from './key-store.ts'

interface NewOwnKey {
  readonly name: string
  /** null: everything that the caller may. */
  readonly scopes: readonly string[] | null
  /** Left out or null: all endpoints. */
  readonly endpoints?: readonly string[] | null
  readonly expiresAt: Date | null
}

export interface OwnKeys {
  /** Oldest first, revoked ones included. */
  list(accountId: string): Promise<readonly ApiKey[]>
  /** Throws invalid_field, and forbidden for scopes that the caller has not. */
  create(caller: Caller, key: NewOwnKey): Promise<ShownKey>
  /** Throws not_found, also for a key of somebody else. */
  rotate(caller: Caller, keyId: string, options: { readonly overlapMs: number }): Promise<ShownKey>
  /** Throws not_found, also for a key of somebody else. */
  revoke(caller: Caller, keyId: string): Promise<void>
}

interface OwnKeysDeps {
  readonly apiKeys: ApiKeys
  readonly audited: (entry: AuditEntry) => { readonly apiKeys: KeyStore }
  readonly clock: Clock
}

// Keys that can still be used: they are held in memory.
const MAX_KEYS = 100

export function createOwnKeys({ apiKeys, audited, clock }: OwnKeysDeps): OwnKeys {
  const through = (caller: Caller, action: string, subject: string, details: Readonly<Record<string, unknown>>) => {
    const actor = caller.keyId === null ? `token of account ${caller.accountId}` : `key ${caller.keyId}`
    return audited({ actor, action, subject, at: clock.now(), details }).apiKeys
  }

  async function mustOwn({ accountId }: Caller, keyId: string): Promise<void> {
    const key = await apiKeys.find(keyId)
    if (key?.accountId !== accountId) throw new ServiceError('not_found', 'there is no key with this id')
  }

  async function refuseMany(accountId: string): Promise<void> {
    const now = clock.now()
    const keys = await apiKeys.list(accountId)
    const live = keys.filter(
      ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || expiresAt > now),
    )
    if (live.length >= MAX_KEYS)
      throw invalidField('name', `cannot be given to another key: there are ${MAX_KEYS}; revoke one first`)
  }

  return {
    list: (accountId) => apiKeys.list(accountId),
    async create(caller, { name, scopes, endpoints = null, expiresAt }) {
      const { accountId } = caller
      const usual = endpoints === null ? caller.scopes : ENDPOINT_SCOPES
      const given = scopes ?? (usual === null ? null : [...usual])
      refuseMore(caller, given)
      await refuseMany(accountId)
      const storeFor = (key: string) =>
        through(caller, 'key.create', accountId, { key, name, scopes: given, endpoints })
      // The id of the key is known when it is stored, and belongs into its audit line.
      const store = { ...storeFor(''), insert: (key: StoredKey) => storeFor(key.id).insert(key) }
      return apiKeys.create({ accountId, name, scopes: given, endpoints, expiresAt }, store)
    },
    async rotate(caller, keyId, { overlapMs }) {
      await mustOwn(caller, keyId)
      await refuseStronger(apiKeys, caller, keyId)
      return apiKeys.rotate(keyId, { overlapMs }, through(caller, 'key.rotate', keyId, { overlap_ms: overlapMs }))
    },
    async revoke(caller, keyId) {
      await mustOwn(caller, keyId)
      await apiKeys.revoke(keyId, through(caller, 'key.revoke', keyId, {}))
    },
  }
}

/** A new secret of a stronger key would be a way to its rights. */
async function refuseStronger(apiKeys: ApiKeys, caller: Caller, keyId: string): Promise<void> {
  const key = await apiKeys.find(keyId)
  refuseMore(caller, key?.scopes ?? null)
}

function refuseMore({ scopes }: Caller, wanted: readonly string[] | null): void {
  if (scopes === null || wanted?.every((scope) => scopes.has(scope)) === true) return
  throw new ServiceError('forbidden', 'a key cannot be given more than the credential that makes it has')
}
