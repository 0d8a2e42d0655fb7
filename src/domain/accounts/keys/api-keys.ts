/** Making, rotating and revoking API keys. The text of a key leaves this file once and is stored nowhere. */

import type { Clock } from '../../../../lib/clock.ts'
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import { WORKERS_ACCOUNT_ID } from '../account.ts'
import { ENDPOINT_SCOPES, isScope, SCOPES } from '../caller.ts'
import { type ApiKey, digestOf, isKeyId, newKeyId, newKeyText, type StoredKey } from './api-key.ts'
import type { KeyRing } from './key-ring.ts'
import type { KeyStore } from './key-store.ts'

interface NewKey {
  readonly accountId: string
  readonly name: string
  /** null: everything that the account may, or that a key of some endpoints may. */
  readonly scopes: readonly string[] | null
  /** Left out or null: all endpoints. */
  readonly endpoints?: readonly string[] | null
  readonly expiresAt: Date | null
}

export interface ShownKey {
  readonly key: ApiKey
  /** To be shown once. */
  readonly text: string
}

/** Changes go to the store, or `through` the same store with an audit line bound to its writes. */
export interface ApiKeys {
  /** Throws not_found (the account) or invalid_field. */
  create(key: NewKey, through?: KeyStore): Promise<ShownKey>
  /** A new secret under the same id; the old one counts for `overlapMs` more. Throws not_found, also for a revoked key. */
  rotate(keyId: string, options: { readonly overlapMs: number }, through?: KeyStore): Promise<ShownKey>
  /** Effective when this resolves. Throws not_found. */
  revoke(keyId: string, through?: KeyStore): Promise<ApiKey>
  find(keyId: string): Promise<ApiKey | null>
  list(accountId: string): Promise<readonly ApiKey[]>
}

interface ApiKeysDeps {
  readonly store: KeyStore
  readonly ring: Pick<KeyRing, 'change'>
  readonly clock: Clock
}

const NAME_MAX_LENGTH = 200
const MAX_OVERLAP_MS = 30 * 86_400_000

export function createApiKeys({ store, ring, clock }: ApiKeysDeps): ApiKeys {
  return {
    async create({ accountId, name, endpoints = null, expiresAt, ...asked }, through = store) {
      const createdAt = clock.now()
      const scopes = asked.scopes ?? (endpoints === null ? null : ENDPOINT_SCOPES)
      checkFields({ accountId, name, scopes, endpoints, expiresAt }, createdAt)
      const id = newKeyId()
      const text = newKeyText(id)
      const key: StoredKey = {
        ...{ id, accountId, name, scopes, endpoints, createdAt, expiresAt },
        ...{ revokedAt: null, lastUsedAt: null, digest: digestOf(text), previousDigest: null, previousUntil: null },
      }
      const made = await ring.change(async () => ((await through.insert(key)) ? key : null))
      if (made === null) throw new ServiceError('not_found', 'there is no account with this id')
      return { key: toApiKey(key), text }
    },
    async rotate(keyId, { overlapMs }, through = store) {
      if (!(overlapMs >= 0 && overlapMs <= MAX_OVERLAP_MS)) throw invalidField('overlap', 'must be at most 30 days')
      const text = newKeyText(keyId)
      const previousUntil = new Date(clock.now().getTime() + overlapMs)
      const secret = { keyId, digest: digestOf(text), previousUntil }
      const key = isKeyId(keyId) ? await ring.change(() => through.rotate(secret)) : null
      if (key === null) throw noKey()
      return { key: toApiKey(key), text }
    },
    async revoke(keyId, through = store) {
      const key = isKeyId(keyId) ? await ring.change(() => through.revoke(keyId, clock.now())) : null
      if (key === null) throw noKey()
      return toApiKey(key)
    },
    async find(keyId) {
      const key = isKeyId(keyId) ? await store.find(keyId) : null
      return key === null ? null : toApiKey(key)
    },
    list: async (accountId) => (await store.list(accountId)).map(toApiKey),
  }
}

const MAX_ENDPOINTS = 50
// One of another account has that before its name.
const ENDPOINT =
  /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\/)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:@[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?)?$/

function checkFields({ accountId, name, scopes, endpoints = null, expiresAt }: NewKey, now: Date): void {
  if (!hasAtMost(name, NAME_MAX_LENGTH)) throw invalidField('name', `must have at most ${NAME_MAX_LENGTH} characters`)
  // Those of workers are made elsewhere, and only there: they are scopes of no account.
  const isKnown = (scope: string) => accountId === WORKERS_ACCOUNT_ID || isScope(scope)
  if (scopes?.length === 0 || scopes?.every(isKnown) === false) {
    throw invalidField('scopes', `must be one or more of ${SCOPES.join(', ')}`)
  }
  if (endpoints !== null) {
    if (endpoints.length < 1 || endpoints.length > MAX_ENDPOINTS || !endpoints.every((each) => ENDPOINT.test(each)))
      throw invalidField(
        'endpoints',
        `must be 1 to ${MAX_ENDPOINTS} names of endpoints, such as poster or thumb@production`,
      )
    if (!scopes?.every((scope) => (ENDPOINT_SCOPES as readonly string[]).includes(scope)))
      throw invalidField(
        'scopes',
        `must be ${ENDPOINT_SCOPES.join(' or ')} for a key of some endpoints: others reach beyond them`,
      )
  }
  if (expiresAt !== null && !(expiresAt > now)) throw invalidField('expires_at', 'must lie in the future')
}

/** Without the digests, which must not leave the domain. */
function toApiKey(key: StoredKey): ApiKey {
  const { digest: _, previousDigest: __, ...shown } = key
  return shown
}

function noKey(): ServiceError {
  return new ServiceError('not_found', 'there is no key with this id')
}
