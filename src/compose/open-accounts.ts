/**
 * Accounts: who calls and who pays. The local kind has one account without limits or prices; the other kinds have accounts with
 * tiers, keys, tokens, rates and prices. Both offer the same interface.
 */
import { readFile, stat } from 'node:fs/promises'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { AccountsConfig, JwtConfig } from '../config/blocks/accounts-config.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Secrets } from '../config/secrets.ts'
import { LOCAL_ACCOUNT_ID } from '../domain/accounts/account.ts'
import { type Accounts, openAccounts } from '../domain/accounts/accounts.ts'
import { createCallers, type VerifyToken } from '../domain/accounts/authenticate.ts'
import {
  type Authenticate,
  type Caller,
  type CredentialProofs,
  createLocalProofs,
  type IsWelcome,
} from '../domain/accounts/caller.ts'
import { type ApiKeys, createApiKeys } from '../domain/accounts/keys/api-keys.ts'
import { type KeyRing, openKeyRing } from '../domain/accounts/keys/key-ring.ts'
import { readTiers } from '../domain/accounts/limits/read-limits.ts'
import { type AccountLimits, DEFAULT_TIERS, mustHaveSubscription } from '../domain/accounts/limits/tiers.ts'
import { createSessions } from '../domain/accounts/sessions.ts'
import { createSignIn, type SignIn } from '../domain/accounts/sign-in.ts'
import type { SigningKey } from '../domain/assets/signed-url.ts'
import { FREE, type PoolPrice, readPrices } from '../domain/credits/prices.ts'
import { createRateLimiter, type RateLimiter } from '../domain/credits/rate-limit.ts'
import { DEFAULT_POOL } from '../domain/deployments/deployment.ts'
import { ServiceError } from '../domain/errors.ts'
import type { FollowedDirectory } from '../domain/events/follow-directories.ts'
import type { Chore } from '../domain/jobs/sweeps/housekeeping.ts'
import type { Store } from '../domain/store.ts'
import type { NodeRules } from '../domain/workflows/prepare.ts'
import type { Directories } from './open-directories.ts'

/** The limits of an account. */
export interface AccountRules {
  limitsOf(accountId: string): AccountLimits
  nodeRules(accountId: string): NodeRules | null
  /** Throws subscription_inactive. */
  mustBeActive(accountId: string): void
  /** What a job in this pool costs the account; throws subscription_inactive. */
  admit(accountId: string, pool: string): PoolPrice | null
}

export interface SharedAccounts extends AccountRules {
  readonly accounts: Accounts
  readonly apiKeys: ApiKeys
  readonly ring: KeyRing
  /** Authenticates the caller and counts the request against its rate. */
  readonly authenticate: Authenticate
  /** The same without counting the request. */
  readonly identify: Authenticate
  readonly isWelcome: IsWelcome
  /** For sessions: they find their caller again by what is kept of its credential. */
  readonly proofs: CredentialProofs
  /** What a job of the pool costs the account; null: nothing. */
  readonly priceFor: (accountId: string, pool: string) => PoolPrice | null
  /** Counts a request of this caller against its rate. */
  readonly countRequest: (caller: Caller) => Caller | Promise<Caller>
  /** Calls the listener soon after a key or an account has changed: open connections may have lost their right. */
  onCredentialsChanged(listener: () => void): () => void
  readonly chores: readonly Chore[]
  /** What must be followed where other processes change it too. */
  readonly lists: { readonly accounts: FollowedDirectory; readonly keys: FollowedDirectory }
  /** Writes state that is only in memory to the store. */
  flush(): Promise<void>
}

interface AccountParts {
  readonly store: Pick<Store, 'directory' | 'apiKeys' | 'limits'>
  readonly clock: Clock
  readonly log: Log
  /** Left out: no other process keeps a copy of the accounts and keys. */
  readonly directories?: Directories
}

const MINUTE_MS = 60_000
// A changed file holds within two seconds.
const TIERS_CHECK_MS = 1500

export async function openSharedAccounts(config: AccountsConfig, parts: AccountParts): Promise<SharedAccounts> {
  const { store, clock, log, directories } = parts
  const tiers = config.tiers === null ? DEFAULT_TIERS : readSetting('tiers', () => readTiers(config.tiers))
  const prices = config.prices === null ? FREE : readSetting('prices', () => readPrices(config.prices))
  const changes = createChangeSignal()
  const announce = (list: 'accounts' | 'keys') => async () => directories?.announce(list)
  const accounts = await openAccounts({
    directory: store.directory,
    tiers,
    clock,
    onChanged: changes.signal,
    announce: announce('accounts'),
  })
  const ring = await openKeyRing({
    store: store.apiKeys,
    clock,
    onChanged: changes.signal,
    announce: announce('keys'),
  })
  const verifyToken = config.jwt === null ? null : await openVerifier(config.jwt, clock)
  const limiter = createRateLimiter({
    store: store.limits,
    rateOf: (accountId) => toRate(accounts.limitsOf(accountId)),
    clock,
  })
  const callers = createCallers({ keys: ring, findAccount: (id) => accounts.find(id), verifyToken, clock })
  const countRequest = createCountRequest(limiter)
  const mustBeActive = (accountId: string) => mustHaveSubscription(accounts.limitsOf(accountId))
  const priceFor = (accountId: string, pool: string) =>
    accounts.limitsOf(accountId).creditFloorMicros === null ? null : prices.priceOf(pool)
  return {
    accounts,
    apiKeys: createApiKeys({ store: store.apiKeys, ring, clock }),
    ring,
    authenticate: withRate(callers.authenticate, countRequest),
    identify: callers.authenticate,
    isWelcome: callers.isWelcome,
    proofs: callers.proofs,
    countRequest,
    onCredentialsChanged: changes.listen,
    lists: { accounts, keys: ring },
    limitsOf: (accountId) => accounts.limitsOf(accountId),
    nodeRules: createNodeRules((accountId) => accounts.limitsOf(accountId)),
    mustBeActive,
    priceFor,
    admit(accountId, pool) {
      mustBeActive(accountId)
      return priceFor(accountId, pool)
    },
    chores: [
      { name: 'write-key-uses', runs: 'each', everyMs: MINUTE_MS, run: () => ring.flushUses() },
      ...createTiersChore(config.tiersFile, { accounts, log }),
    ],
    flush: () => ring.flushUses(),
  }
}

/** Many changes at once, such as those of the first refresh, make one call. */
function createChangeSignal() {
  const listeners = new Set<() => void>()
  let isSignalled = false
  return {
    signal() {
      if (isSignalled) return
      isSignalled = true
      setImmediate(() => {
        isSignalled = false
        for (const listener of listeners) listener()
      })
    },
    listen(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** A fault in a block of settings stops the start with one line, like that of any other setting. */
function readSetting<Value>(name: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw error instanceof ServiceError ? new ConfigError(`${name}: ${error.message}`) : error
  }
}

async function openVerifier(config: JwtConfig, clock: Clock): Promise<VerifyToken> {
  // Loaded only here: most services have no tokens of others.
  const { openJwtVerifier } = await import('../adapters/tokens/jwt.ts')
  try {
    return await openJwtVerifier({ ...config, clock })
  } catch (error) {
    throw new ConfigError(`jwt: there are no keys to be read: ${(error as Error).message.replaceAll(/\s+/g, ' ')}`)
  }
}

function toRate({ requestsPerMinute, requestBurst }: AccountLimits) {
  return requestsPerMinute === null ? null : { perMinute: requestsPerMinute, burst: requestBurst }
}

function createCountRequest(limiter: RateLimiter): SharedAccounts['countRequest'] {
  return (caller) => {
    const taken = limiter.take(caller.accountId)
    return taken === undefined ? caller : taken.then(() => caller)
  }
}

/** The rate is checked as soon as the caller is known, before anything is looked up, so that a 429 reveals nothing. */
function withRate(identify: Authenticate, count: SharedAccounts['countRequest']): Authenticate {
  return (credential) => {
    const caller = identify(credential)
    return caller instanceof Promise ? caller.then(count) : count(caller)
  }
}

/** The sets are built once per limits object, which stays the same object until something changes. */
function createNodeRules(limitsOf: (accountId: string) => AccountLimits): AccountRules['nodeRules'] {
  const made = new WeakMap<AccountLimits, NodeRules>()
  return (accountId) => {
    const limits = limitsOf(accountId)
    const { allowNodes, denyNodes } = limits
    if (allowNodes === null && denyNodes.length === 0) return null
    const known = made.get(limits)
    if (known !== undefined) return known
    const rules = { allow: allowNodes === null ? null : new Set(allowNodes), deny: new Set(denyNodes) }
    made.set(limits, rules)
    return rules
  }
}

/** Tiers in a file of their own are read again when it changes. A faulty file changes nothing. */
function createTiersChore(path: string | null, { accounts, log }: { accounts: Accounts; log: Log }): Chore[] {
  if (path === null) return []
  let seen: string | null = null
  return [
    {
      name: 'reload-tiers',
      runs: 'each',
      everyMs: TIERS_CHECK_MS,
      async run() {
        const { mtimeMs, size } = await stat(path)
        const mark = `${mtimeMs} ${size}`
        if (mark === seen) return
        const isFirst = seen === null
        seen = mark
        const tiers = readTiers(JSON.parse(await readFile(path, 'utf8')))
        const changed = await accounts.useTiers(tiers)
        if (!isFirst || changed > 0) log.info({ accounts: changed }, 'the tiers were read again')
      },
    },
  ]
}

/** What the console needs of the service: signing in, and how the account that is signed in stands. */
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
      mayRun: limits?.subscriptionActive ?? true,
      running: use?.running ?? 0,
      queued: use?.queued ?? 0,
      maxRunning: limits?.concurrentJobs ?? null,
      maxQueued: limits?.queuedJobs ?? config.jobs.maxQueued,
      jobPrice: shared?.priceFor(accountId, DEFAULT_POOL) ?? null,
      credit: balance === null ? null : { available: balance.available, held: balance.held },
    }
  }
}
