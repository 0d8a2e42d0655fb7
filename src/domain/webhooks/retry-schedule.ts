/** When a message is tried again: soon at first, then ever more rarely, until three days after the first try. */

const DAY_MS = 86_400_000
export const RETRY_WINDOW_MS = 3 * DAY_MS

// Multiples of the first pause. With five seconds: 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, 8 h, and 12 h from then on.
const STEPS = [1, 6, 24, 120, 360, 720, 1440, 2880, 5760, 8640]
// Messages that failed together do not come back together.
const JITTER = 0.2

interface RetryOptions {
  readonly firstMs: number
  readonly random?: () => number
}

/** `attempts`: how many have failed, this one included. null: it is given up. */
export function nextTryAt(
  { attempts, firstAt, now }: { readonly attempts: number; readonly firstAt: Date; readonly now: Date },
  { firstMs, random = Math.random }: RetryOptions,
): Date | null {
  const step = STEPS[Math.min(attempts, STEPS.length) - 1] ?? 1
  const pauseMs = firstMs * step * (1 + JITTER * (2 * random() - 1))
  const next = new Date(now.getTime() + pauseMs)
  return next.getTime() - firstAt.getTime() > RETRY_WINDOW_MS ? null : next
}
