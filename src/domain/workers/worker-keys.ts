/**
 * Keys of workers that join from other machines. They are API keys of nobody's account whose scopes name the pools that they may
 * take jobs of, so every surface but the workers' own refuses them: there is no account that they could act for.
 */
import { WORKERS_ACCOUNT_ID } from '../accounts/account.ts'
import type { Caller } from '../accounts/caller.ts'
import type { ApiKey } from '../accounts/keys/api-key.ts'
import type { ApiKeys, ShownKey } from '../accounts/keys/api-keys.ts'
import type { KeyRing } from '../accounts/keys/key-ring.ts'
import type { KeyStore } from '../accounts/keys/key-store.ts'
import { invalidField, ServiceError } from '../errors.ts'

/** Who a joined worker is: its key, which several of its processes may share. */
export interface WorkerIdentity {
  readonly keyId: string
  /** Names that may be taken jobs of. */
  readonly pools: ReadonlySet<string>
  /** Whether runs get the credentials that their submits brought. */
  readonly hasCredentials: boolean
  /** Whether its machines may be told to make releases of accounts and to serve them. */
  readonly hasBuilds: boolean
  /** The very object that the ring gave out. */
  readonly caller: Caller
}

interface NewWorkerKey {
  readonly name: string
  readonly pools: readonly string[]
  readonly hasCredentials: boolean
  readonly hasBuilds: boolean
  readonly expiresAt: Date | null
}

/** Changes go to the store, or `through` the same store with an audit line bound to its writes. */
export interface WorkerKeys {
  /** Throws `unauthorized`, in one wording whatever is wrong. */
  identify(text: string | null): WorkerIdentity
  /** Who shows the key with this id; null: no such key would be accepted. */
  find(keyId: string): WorkerIdentity | null
  /** Whether the key would still be accepted. */
  isGood(worker: WorkerIdentity): boolean
  /** Throws invalid_field. */
  create(key: NewWorkerKey, through?: KeyStore): Promise<ShownKey>
  /** Throws not_found, also for a key of an account. */
  revoke(keyId: string, through?: KeyStore): Promise<ApiKey>
  list(): Promise<readonly ApiKey[]>
}

interface WorkerKeysDeps {
  readonly ring: Pick<KeyRing, 'identify' | 'isGood' | 'find'>
  readonly apiKeys: Pick<ApiKeys, 'create' | 'find' | 'list' | 'revoke'>
}

const SCOPE = 'workers:join:'
const CREDENTIALS_SCOPE = 'workers:credentials'
const BUILDS_SCOPE = 'workers:builds'
const POOL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const MAX_POOLS = 100

export function createWorkerKeys({ ring, apiKeys }: WorkerKeysDeps): WorkerKeys {
  const refused = () => new ServiceError('unauthorized', 'a valid worker key is required')
  return {
    identify(text) {
      if (text === null) throw refused()
      const worker = toIdentity(ring.identify(text))
      if (worker === null) throw refused()
      return worker
    },
    find(keyId) {
      const caller = ring.find(keyId)
      return caller === null ? null : toIdentity(caller)
    },
    isGood: ({ caller }) => ring.isGood(caller),
    async create({ name, pools, hasCredentials, hasBuilds, expiresAt }, through) {
      if (pools.length === 0 || pools.length > MAX_POOLS || !pools.every((pool) => POOL.test(pool))) {
        throw invalidField('pools', `must be 1 to ${MAX_POOLS} names of pools: small letters, digits and dashes`)
      }
      const scopes = [...new Set(pools)].map((pool) => `${SCOPE}${pool}`)
      if (hasCredentials) scopes.push(CREDENTIALS_SCOPE)
      if (hasBuilds) scopes.push(BUILDS_SCOPE)
      return apiKeys.create({ accountId: WORKERS_ACCOUNT_ID, name, scopes, expiresAt }, through)
    },
    async revoke(keyId, through) {
      const key = await apiKeys.find(keyId)
      if (key?.accountId !== WORKERS_ACCOUNT_ID) throw new ServiceError('not_found', 'there is no key with this id')
      return apiKeys.revoke(keyId, through)
    },
    list: () => apiKeys.list(WORKERS_ACCOUNT_ID),
  }
}

function toIdentity(caller: Caller): WorkerIdentity | null {
  if (caller.accountId !== WORKERS_ACCOUNT_ID || caller.keyId === null) return null
  const scopes = [...(caller.scopes ?? [])]
  return {
    ...{ keyId: caller.keyId, pools: new Set(poolsOf(scopes)), caller },
    hasCredentials: givesCredentials(scopes),
    hasBuilds: givesBuilds(scopes),
  }
}

/** The pools that a key may take jobs of. */
export function poolsOf(scopes: readonly string[] | null): string[] {
  return (scopes ?? []).filter((scope) => scope.startsWith(SCOPE)).map((scope) => scope.slice(SCOPE.length))
}

/** Whether runs under a key get the credentials that their submits brought. */
export function givesCredentials(scopes: readonly string[] | null): boolean {
  return scopes?.includes(CREDENTIALS_SCOPE) === true
}

/** Whether machines under a key may make releases of accounts and serve them. */
export function givesBuilds(scopes: readonly string[] | null): boolean {
  return scopes?.includes(BUILDS_SCOPE) === true
}
