/**
 * So many requests of an account in a window of time. A window begins with the first request and ends as a whole, so a refusal
 * can say when the next request is allowed. This is the router's own limit in this process; the rate of an account over all
 * surfaces is in credits/rate-limit.ts.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { RouterError } from '../router-error.ts'

interface RateRule {
  readonly allowance: number
  readonly windowMs: number
}

export interface RateWindow {
  /** Counts one request. Throws `rate` with the time until the window ends. */
  take(accountId: string): void
}

interface RateWindowDeps {
  readonly clock: Clock
  /** null: no limit, and no bookkeeping. */
  readonly ruleFor: (accountId: string) => RateRule | null
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
      if (rule === null) return
      const now = clock.now().getTime()
      let window = windows.get(accountId)
      if (window === undefined || window.endsAt <= now) {
        if (windows.size > SWEEP_ABOVE) sweep(now)
        window = { endsAt: now + rule.windowMs, used: 0 }
        windows.set(accountId, window)
      }
      window.used++
      if (window.used > rule.allowance) throw toRefusal(rule, window.endsAt - now)
    },
  }
}

function toRefusal({ allowance, windowMs }: RateRule, leftMs: number): RouterError {
  return new RouterError(
    'rate',
    `${allowance} requests per ${Math.round(windowMs / 1000)} seconds are allowed; wait until the window is over`,
    { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) },
  )
}
