/** Whether a schedule may still submit: asked at every time, because what it was made with may have been withdrawn since. */
import type { Clock } from '../../../lib/clock.ts'
import type { Accounts } from '../accounts/accounts.ts'
import type { Scope } from '../accounts/caller.ts'
import type { KeyStore } from '../accounts/keys/key-store.ts'
import type { Schedule } from './schedule.ts'

interface Withdrawn {
  readonly code: 'forbidden' | 'unauthorized'
  readonly message: string
  /** It is stopped until somebody resumes it; otherwise its next time is tried again. */
  readonly isForGood: boolean
}

/** null: it may. */
export type Authority = (schedule: Pick<Schedule, 'accountId' | 'keyId' | 'work'>) => Promise<Withdrawn | null>

interface AuthorityDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly keys: Pick<KeyStore, 'find'>
  readonly clock: Clock
}

/** What a credential needs to have others run its work. */
export function scopesFor({ endpoint }: Pick<Schedule['work'], 'endpoint'>): readonly Scope[] {
  return endpoint === null ? ['jobs:write'] : ['jobs:write', 'endpoints:run']
}

export function createAuthority({ accounts, keys, clock }: AuthorityDeps): Authority {
  const stopped = (message: string): Withdrawn => ({ code: 'unauthorized', message, isForGood: true })
  return async ({ accountId, keyId, work }) => {
    if (accounts.find(accountId)?.status !== 'active')
      return { code: 'forbidden', message: 'the account is suspended', isForGood: false }
    if (keyId === null) return null
    const key = await keys.find(keyId)
    if (key === null || key.revokedAt !== null) return stopped(`the key ${keyId}, in whose name it ran, was revoked`)
    if (key.expiresAt !== null && key.expiresAt <= clock.now())
      return stopped(`the key ${keyId}, in whose name it ran, has expired`)
    const missing = scopesFor(work).find((scope) => key.scopes !== null && !key.scopes.includes(scope))
    return missing === undefined
      ? null
      : stopped(`the key ${keyId}, in whose name it ran, has not the scope ${missing}`)
  }
}
