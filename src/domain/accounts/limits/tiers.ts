/**
 * What an account may use. A tier is a named set of limits in the configuration; an account names its tier and may have single
 * limits of its own. Each limit says where it is enforced.
 */
import { ServiceError } from '../../errors.ts'

export interface AccountLimits {
  /** Jobs that run at a time; further ones wait. In the claim. */
  readonly concurrentJobs: number
  /** Jobs that wait; further ones get `queue_full`. In the submitting transaction. */
  readonly queuedJobs: number
  /** Its share of the time of engines that others want too, in percent of an ordinary account's. In the claim. */
  readonly sharePercent: number
  /** Requests to every surface, refilled evenly; null: no limit, and no bookkeeping. Where the caller is authenticated. */
  readonly requestsPerMinute: number | null
  /** How many of them may come at once after a pause. */
  readonly requestBurst: number
  /** Calls of partner models under way. In the transaction that admits a call. */
  readonly routerConcurrency: number
  /** The most that calls of partner models under way may cost together; null: no ceiling. In the same transaction. */
  readonly committedSpendMicros: number | null
  /** Event streams and sockets open at a time. Where one is opened. */
  readonly streams: number
  /** The largest uploaded file; null: the service's own limit. Where its bytes are received. */
  readonly uploadBytes: number | null
  /** What it may keep: uploads, outputs and answers of models, the same bytes once; null: no limit. Where bytes are received. */
  readonly storageBytes: number | null
  /** How long one job may run; null: the service's own limit. In the worker. */
  readonly runSeconds: number | null
  /** Node classes that workflows may use; null: all. Where a workflow is prepared. */
  readonly allowNodes: readonly string[] | null
  /** Node classes that they may not use, even when allowed above. */
  readonly denyNodes: readonly string[]
  /**
   * Partner models that the account may use, by id or pattern (`bfl/*`); null: all that ask for no entitlement. Where a model
   * is looked up.
   */
  readonly allowModels: readonly string[] | null
  /** Partner models that it may not use, even when allowed above. */
  readonly denyModels: readonly string[]
  /** Jobs that do not say themselves are answered with earlier results of the account, where those are exactly theirs. In a submit. */
  readonly reuseResults: boolean
  /** Without it nothing runs; what is there stays readable. Before a submit and before a call of a partner model. */
  readonly subscriptionActive: boolean
  /**
   * How far the balance may fall: 0, or less for accounts that pay later; null: the account is not metered at all. In every
   * transaction that holds or takes back credit.
   */
  readonly creditFloorMicros: number | null
}

export type LimitOverrides = { readonly [Name in keyof AccountLimits]?: AccountLimits[Name] }

export interface Tiers {
  readonly byName: ReadonlyMap<string, AccountLimits>
  /** The tier of accounts that name none. */
  readonly defaultName: string
}

export const BASE_LIMITS: AccountLimits = {
  concurrentJobs: 1,
  queuedJobs: 100,
  sharePercent: 100,
  // A client polls each job it watches about twice a second.
  requestsPerMinute: 6000,
  requestBurst: 600,
  routerConcurrency: 5,
  committedSpendMicros: null,
  streams: 100,
  uploadBytes: null,
  storageBytes: null,
  runSeconds: null,
  allowNodes: null,
  denyNodes: [],
  allowModels: null,
  denyModels: [],
  reuseResults: false,
  subscriptionActive: true,
  creditFloorMicros: 0,
}

const GIB = 2 ** 30

/** What an installation starts with: its own tiers replace these as a whole. */
export const DEFAULT_TIERS: Tiers = {
  defaultName: 'free',
  byName: new Map([
    ['free', { ...BASE_LIMITS, storageBytes: 20 * GIB, runSeconds: 1800 }],
    [
      'standard',
      {
        ...BASE_LIMITS,
        ...{ concurrentJobs: 3, queuedJobs: 1000, routerConcurrency: 10, streams: 500, storageBytes: 200 * GIB },
      },
    ],
    [
      'pro',
      {
        ...BASE_LIMITS,
        ...{ concurrentJobs: 5, queuedJobs: 10_000, routerConcurrency: 40, streams: 2000, storageBytes: 1024 * GIB },
      },
    ],
  ]),
}

/** An account whose tier does not exist any more has the least, and no subscription, until an operator gives it another tier. */
export function limitsFor(tiers: Tiers, tier: string, overrides: LimitOverrides): AccountLimits {
  return { ...(tiers.byName.get(tier) ?? { ...BASE_LIMITS, subscriptionActive: false }), ...overrides }
}

/** Throws subscription_inactive. */
export function mustHaveSubscription({ subscriptionActive }: Pick<AccountLimits, 'subscriptionActive'>): void {
  if (subscriptionActive) return
  throw new ServiceError('subscription_inactive', 'this account has no active subscription and cannot run anything')
}

/** A limit that is the same for everybody, or each account's own. */
export type PerAccount = number | ((accountId: string) => number)

export function forAccount(limit: PerAccount, accountId: string): number {
  return typeof limit === 'number' ? limit : limit(accountId)
}
