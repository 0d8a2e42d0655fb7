/** The keys that an account has at providers, in its own hands: saved, tried, removed, and never shown again. */
import type { Clock } from '../../../../lib/clock.ts'
import type { Sealer } from '../../../../lib/sealer.ts'
import type { AuditEntry } from '../../accounts/audit.ts'
import type { Caller } from '../../accounts/caller.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { KeyVerdict, Provider } from '../provider.ts'
import {
  openKey,
  type ProviderKeyRing,
  type ProviderKeyStore,
  type SealedProviderKey,
  sealKey,
} from './provider-keys.ts'

export interface ShownProviderKey extends Omit<SealedProviderKey, 'sealed' | 'accountId'> {
  /** False: it was sealed under a key that this service does not have, and calls with it fail until it is saved again. */
  readonly canBeUsed: boolean
}

export interface ProviderKeys {
  list(accountId: string): Promise<readonly ShownProviderKey[]>
  /** Throws not_found, invalid_field, forbidden (without a key that seals). */
  put(caller: Caller, provider: string, key: string): Promise<ShownProviderKey>
  /** Throws not_found. */
  remove(caller: Caller, provider: string): Promise<void>
  /** Asks the provider something that costs nothing. Throws not_found. */
  test(accountId: string, provider: string): Promise<KeyVerdict>
}

interface ProviderKeysDeps {
  readonly store: ProviderKeyStore
  readonly audited: (entry: AuditEntry) => { readonly providerKeys: ProviderKeyStore }
  readonly ring: Pick<ProviderKeyRing, 'refresh'>
  readonly sealer: Sealer | null
  readonly providerOf: (name: string) => Provider | null
  readonly clock: Clock
}

const MAX_KEYS = 200
const MIN_LENGTH = 8
const MAX_LENGTH = 8192
const VISIBLE = /^[\x21-\x7e]+$/
// Of a shorter key its end would be too much of it.
const SHOWN_FROM = 16
const TEST_MS = 15_000

export function createProviderKeys(deps: ProviderKeysDeps): ProviderKeys {
  const { store, ring, sealer, clock } = deps

  const through = ({ accountId, keyId }: Caller, action: string, provider: string) => {
    const actor = keyId === null ? `token of account ${accountId}` : `key ${keyId}`
    return deps.audited({ actor, action, subject: accountId, at: clock.now(), details: { provider } }).providerKeys
  }
  const toShown = ({ sealed: _, accountId: __, ...shown }: SealedProviderKey, canBeUsed: boolean) => ({
    ...shown,
    canBeUsed,
  })
  const find = async (accountId: string, provider: string) => {
    const { keys } = await store.ofAccount(accountId)
    const found = keys.find((key) => key.provider === provider)
    if (found === undefined) throw new ServiceError('not_found', 'this account has no key for such a provider')
    return found
  }

  return {
    async list(accountId) {
      const { keys } = await store.ofAccount(accountId)
      return keys.map((key) => toShown(key, openKey(sealer, key) !== null))
    },
    async put(caller, provider, key) {
      const { accountId } = caller
      const takes = deps.providerOf(provider)?.ownKeys
      if (takes === undefined)
        throw new ServiceError(
          'not_found',
          'there is no provider of this name that takes keys; GET /v2/models names them',
        )
      mustBeKey(key, takes.problemOf(key))
      if (sealer === null)
        throw new ServiceError(
          'forbidden',
          'this service cannot keep keys of providers: it has no ATELIER_SECRET_KEY to seal them with. Whoever runs it can set one (openssl rand -base64 32)',
        )
      const now = clock.now()
      const lastFour = key.length >= SHOWN_FROM ? key.slice(-4) : ''
      const about = { accountId, provider, lastFour, createdAt: now, changedAt: now }
      const sealed: SealedProviderKey = { ...about, sealed: sealKey(sealer, about, key) }
      const { outcome } = await through(caller, 'provider_key.put', provider).put(sealed, MAX_KEYS)
      await ring.refresh(accountId)
      if (outcome === 'too_many')
        throw invalidField('provider', `cannot be added: an account has at most ${MAX_KEYS} keys; remove one first`)
      return toShown(await find(accountId, provider), true)
    },
    async remove(caller, provider) {
      const isRemoved = await through(caller, 'provider_key.remove', provider).remove(caller.accountId, provider)
      await ring.refresh(caller.accountId)
      if (!isRemoved) throw new ServiceError('not_found', 'this account has no key for such a provider')
    },
    async test(accountId, provider) {
      const key = openKey(sealer, await find(accountId, provider))
      if (key === null) return { outcome: 'unreadable', upstreamStatus: null }
      const test = deps.providerOf(provider)?.ownKeys?.test ?? null
      if (test === null) return { outcome: 'untestable', upstreamStatus: null }
      const deadline = new Date(clock.now().getTime() + TEST_MS)
      return test(key, { signal: AbortSignal.timeout(TEST_MS), deadline })
    },
  }
}

/** What is wrong is said without a part of the key. */
function mustBeKey(key: string, problem: string | null): void {
  if (key.length < MIN_LENGTH || key.length > MAX_LENGTH || !VISIBLE.test(key))
    throw invalidField('key', `must be ${MIN_LENGTH} to ${MAX_LENGTH} visible ASCII characters without blanks`)
  if (problem !== null) throw invalidField('key', problem)
}
