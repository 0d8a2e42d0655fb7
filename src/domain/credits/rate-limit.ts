/**
 * Requests per account, counted in the store so that the limit holds over all processes. To spare the store a write per
 * request, a process takes a few requests at a time: the share of a tenth of a second. It asks for the next share while half of
 * one is left, so that hardly any request waits, and drops what nobody used for a second. Every request uses up one that the
 * store gave: over any time t an account never makes more than `burst + rate * t`, plus what each process had taken along
 * before, which is at most a fifth of a second's worth. A refusal is remembered until there is something to take again, so
 * whoever keeps asking costs the store nothing.
 */
import type { Clock } from '../../../lib/clock.ts'
import { ServiceError } from '../errors.ts'

/** Request rates in the store, so that they hold over all processes and restarts. */
export interface RequestRate {
  readonly perMinute: number
  /** The most that may be taken at once after a pause. */
  readonly burst: number
}

interface RequestGrant {
  /** Requests that may be made now: from none to what was asked for. */
  readonly granted: number
  /** When there will be another one; only meaningful when fewer than asked for were granted. */
  readonly nextAt: Date
}

/** So many requests in a window of time, which begins with the first of them and ends as a whole. */
export interface WindowRate {
  readonly allowance: number
  readonly windowMs: number
}

interface WindowGrant {
  /** Requests that may be made now: from none to what was asked for. */
  readonly granted: number
  readonly endsAt: Date
}

export interface LimitStore {
  /** Over any time t the grants of an account never add up to more than `burst + perMinute * t`. */
  takeRequests(accountId: string, rate: RequestRate, count: number, now: Date): Promise<RequestGrant>
  /** The grants of one window never add up to more than its allowance. */
  takeWindow(accountId: string, rate: WindowRate, count: number, now: Date): Promise<WindowGrant>
}

export interface RateLimiter {
  /** Counts one request. At once where it can; throws, or rejects with, rate_limited. */
  take(accountId: string): undefined | Promise<void>
}

/** Knows whose rate is spent, for answers that tell more about that account. */
export class RateLimitedError extends ServiceError {
  readonly accountId: string

  constructor(accountId: string, { perMinute, burst }: RequestRate, waitMs: number) {
    const allowed = `requests of this account are limited to ${perMinute} a minute, ${burst} at once`
    super('rate_limited', `${allowed}; slow down and try again`, {
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    })
    this.accountId = accountId
  }
}

interface RateLimiterDeps {
  readonly store: Pick<LimitStore, 'takeRequests'>
  /** null: this account has no limit, and nothing is counted. */
  readonly rateOf: (accountId: string) => RequestRate | null
  readonly clock: Clock
}

interface Share {
  left: number
  /** When what is left is dropped. */
  keptUntil: number
  refusedUntil: number
  /** A request to the store that further callers wait for. */
  asking: Promise<void> | null
  waiting: number
}

const SHARE_MS = 100
const MAX_SHARE = 100
const KEPT_MS = 1000
const MINUTE_MS = 60_000
// Accounts whose shares are remembered; beyond it those that hold nothing are forgotten.
const MAX_SHARES = 10_000

export function createRateLimiter({ store, rateOf, clock }: RateLimiterDeps): RateLimiter {
  const shares = new Map<string, Share>()

  function shareOf(accountId: string): Share {
    const known = shares.get(accountId)
    if (known !== undefined) return known
    if (shares.size >= MAX_SHARES) forgetIdle(shares, clock.now().getTime())
    const share: Share = { left: 0, keptUntil: 0, refusedUntil: 0, asking: null, waiting: 0 }
    shares.set(accountId, share)
    return share
  }

  async function ask(accountId: string, share: Share, rate: RequestRate): Promise<void> {
    // Requests that already wait are served by the same answer.
    const wanted = share.waiting + sizeOf(rate)
    const now = clock.now()
    try {
      const { granted, nextAt } = await store.takeRequests(accountId, rate, wanted, now)
      share.left = (now.getTime() < share.keptUntil ? share.left : 0) + granted
      share.keptUntil = now.getTime() + KEPT_MS
      share.refusedUntil = granted < wanted ? nextAt.getTime() : 0
    } finally {
      share.asking = null
    }
  }

  async function takeLater(accountId: string, share: Share, rate: RequestRate): Promise<void> {
    share.waiting++
    try {
      while (!takeNow(accountId, share, rate)) {
        // Asked in a microtask, so that requests which arrive together are counted in one write.
        share.asking ??= Promise.resolve().then(() => ask(accountId, share, rate))
        await share.asking
      }
    } finally {
      share.waiting--
    }
  }

  function askAhead(accountId: string, share: Share, rate: RequestRate): void {
    if (share.asking !== null || clock.now().getTime() < share.refusedUntil) return
    share.asking = ask(accountId, share, rate)
    // After a failure the next request that finds nothing left asks the store again.
    share.asking.catch(() => {})
  }

  function takeNow(accountId: string, share: Share, rate: RequestRate): boolean {
    const now = clock.now().getTime()
    if (share.left > 0 && now < share.keptUntil) {
      share.left--
      return true
    }
    if (now < share.refusedUntil) throw new RateLimitedError(accountId, rate, share.refusedUntil - now)
    return false
  }

  return {
    take(accountId) {
      const rate = rateOf(accountId)
      if (rate === null) return undefined
      const share = shareOf(accountId)
      if (!takeNow(accountId, share, rate)) return takeLater(accountId, share, rate)
      if (share.left < sizeOf(rate) / 2) askAhead(accountId, share, rate)
      return undefined
    },
  }
}

/** How many requests a process takes at a time: never a large part of a small burst. */
function sizeOf({ perMinute, burst }: RequestRate): number {
  return Math.min(MAX_SHARE, Math.floor((perMinute * SHARE_MS) / MINUTE_MS), Math.floor(burst / 10))
}

function forgetIdle(shares: Map<string, Share>, now: number): void {
  for (const [accountId, share] of shares) {
    const isIdle = share.asking === null && share.waiting === 0 && now >= share.keptUntil && now >= share.refusedUntil
    if (isIdle) shares.delete(accountId)
  }
}
