/** Whether work that goes on without a request may still be done in somebody's name: what it was asked with may have been withdrawn since. */
import type { Clock } from '../../../../lib/clock.ts'
import type { Accounts } from '../accounts.ts'
import type { Scope } from '../caller.ts'
import type { KeyStore } from './key-store.ts'

interface Withdrawn {
  readonly code: 'forbidden' | 'unauthorized'
  readonly message: string
  /** It is stopped until somebody asks again; otherwise it is tried again later. */
  readonly isForGood: boolean
}

/** In whose name, and under which key; null: under none. */
interface Holder {
  readonly accountId: string
  readonly keyId: string | null
}

/** null: it may. */
export type Authority = (holder: Holder, needed: readonly Scope[]) => Promise<Withdrawn | null>

interface AuthorityDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly keys: Pick<KeyStore, 'find'>
  readonly clock: Clock
}

export function createAuthority({ accounts, keys, clock }: AuthorityDeps): Authority {
  const stopped = (message: string): Withdrawn => ({ code: 'unauthorized', message, isForGood: true })
  return async ({ accountId, keyId }, needed) => {
    if (accounts.find(accountId)?.status !== 'active')
      return { code: 'forbidden', message: 'the account is suspended', isForGood: false }
    if (keyId === null) return null
    const key = await keys.find(keyId)
    if (key === null || key.revokedAt !== null) return stopped(`the key ${keyId}, in whose name it ran, was revoked`)
    if (key.expiresAt !== null && key.expiresAt <= clock.now())
      return stopped(`the key ${keyId}, in whose name it ran, has expired`)
    const missing = needed.find((scope) => key.scopes !== null && !key.scopes.includes(scope))
    return missing === undefined
      ? null
      : stopped(`the key ${keyId}, in whose name it ran, has not the scope ${missing}`)
  }
}
