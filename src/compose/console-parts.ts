/** What the console needs of the service: signing in, and how the account that is signed in stands. */
import type { Clock } from '../../lib/clock.ts'
import type { Config } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import { LOCAL_ACCOUNT_ID } from '../domain/accounts/account.ts'
import { type Authenticate, type Caller, createLocalProofs } from '../domain/accounts/caller.ts'
import { createSessions } from '../domain/accounts/sessions.ts'
import { createSignIn, type SignIn } from '../domain/accounts/sign-in.ts'
import type { SigningKey } from '../domain/assets/signed-url.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import type { Store } from '../domain/store.ts'
import type { SharedAccounts } from './open-accounts.ts'

interface SignInParts {
  readonly store: Store
  readonly secrets: Secrets
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly identify: Authenticate
  readonly signingKeys: readonly SigningKey[]
  readonly clock: Clock
}

export function openSignIn({ store, secrets, shared, identify, signingKeys, clock }: SignInParts): SignIn {
  return createSignIn({
    sessions: createSessions({ secrets: signingKeys.map(({ secret }) => secret), epochs: store, clock }),
    identify,
    proofs: shared === null ? createLocalProofs(secrets.token?.reveal() ?? null) : shared.proofs,
    adminToken: secrets.adminToken?.reveal() ?? null,
    clock,
  })
}

/** How an account stands, for the page's first line. */
export function createStandingOf(config: Config, store: Store, shared: SharedAccounts | null) {
  return async ({ accountId }: Caller) => {
    const [use, balance] = await Promise.all([store.accounts.findUse(accountId), store.ledger.balance(accountId)])
    const record = shared?.accounts.find(accountId) ?? null
    const limits = shared?.limitsOf(accountId) ?? null
    return {
      id: accountId,
      name: record?.name ?? (accountId === LOCAL_ACCOUNT_ID ? 'local' : accountId),
      tier: record?.tier ?? null,
      running: use?.running ?? 0,
      queued: use?.queued ?? 0,
      maxRunning: limits?.concurrentJobs ?? null,
      maxQueued: limits?.queuedJobs ?? config.jobs.maxQueued,
      jobPrice: shared?.priceFor(accountId, DEFAULT_POOL) ?? null,
      credit: balance === null ? null : { available: balance.available, held: balance.held },
    }
  }
}
