/**
 * So many requests of an account in a window of time. A window begins with the first request and ends as a whole, so a refusal
 * can say when the next request is allowed. It is counted in this process where that serves alone, and else in the store, so that
 * the limit holds over all processes. The rate of an account over all surfaces is in credits/rate-limit.ts.
 */

import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { LimitStore, WindowRate } from '../../credits/rate-limit.ts'
import { RouterError } from '../router-error.ts'

export interface RateWindow {
  /** Counts one request. Throws, or rejects with, `rate` with the time until the window ends. */
  take(accountId: string): undefined | Promise<void>
}

interface RateWindowDeps {
  readonly clock: Clock
  /** null: no limit, and no bookkeeping. */
  readonly ruleFor: (accountId: string) => WindowRate | null
}

// Above this many accounts, those whose window has ended are forgotten.
const SWEEP_ABOVE = 10_000

export function createRateWindow({ clock, ruleFor }: RateWindowDeps): RateWindow {
  const windows = new Map<string, { endsAt: number; used: number }>()

  function sweep(now: number): void {
    for (const [accountId, { endsAt }] of windows) if (endsAt <= now) windows.delete(accountId)
  }

  return {
    take(accountId) {
      const rule = ruleFor(accountId)
      if (rule === null) return undefined
      const now = clock.now().getTime()
      let window = windows.get(accountId)
      if (window === undefined || window.endsAt <= now) {
        if (windows.size > SWEEP_ABOVE) sweep(now)
        window = { endsAt: now + rule.windowMs, used: 0 }
        windows.set(accountId, window)
      }
      window.used++
      if (window.used > rule.allowance) throw toRefusal(rule, window.endsAt - now)
      return undefined
    },
  }
}

interface SharedRateWindowDeps extends RateWindowDeps {
  readonly store: Pick<LimitStore, 'takeWindow'>
}

/** A refusal is remembered until its window ends, so whoever keeps asking costs the store nothing. */
export function createSharedRateWindow({ store, clock, ruleFor }: SharedRateWindowDeps): RateWindow {
  const refusedUntil = new BoundedMap<string, number>(SWEEP_ABOVE)

  async function takeFrom(accountId: string, rule: WindowRate): Promise<void> {
    const now = clock.now()
    const { granted, endsAt } = await store.takeWindow(accountId, rule, 1, now)
    if (granted > 0) return
    refusedUntil.set(accountId, endsAt.getTime())
    throw toRefusal(rule, endsAt.getTime() - now.getTime())
  }

  return {
    take(accountId) {
      const rule = ruleFor(accountId)
      if (rule === null) return undefined
      const now = clock.now().getTime()
      const until = refusedUntil.get(accountId) ?? 0
      // Never for longer than a window: the rule may have become a shorter one, or the clock may have been set back.
      if (now < until && until <= now + rule.windowMs) throw toRefusal(rule, until - now)
      return takeFrom(accountId, rule)
    },
  }
}

function toRefusal({ allowance, windowMs }: WindowRate, leftMs: number): RouterError {
  return new RouterError(
    'rate',
    `${allowance} requests per ${Math.round(windowMs / 1000)} seconds are allowed; wait until the window is over`,
    { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) },
  )
}
