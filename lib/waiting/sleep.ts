/** Pauses: for a time, for a growing time between tries, or until a bell rings. A sleep that a signal ends does not reject, so a loop checks its signal afterwards. */

// A timer with a longer delay would fire at once.
export const MAX_TIMER_MS = 2_147_483_647

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, Math.min(ms, MAX_TIMER_MS))
    signal?.addEventListener('abort', end)
  })
}

/** True when `work` settled within `ms`. Leaves no timer behind and never rejects because of `work`. */
export async function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController()
  const settled = work.then(
    () => true,
    () => true,
  )
  const late = sleep(Math.max(0, ms), over.signal).then(() => false)
  const inTime = await Promise.race([settled, late])
  // With an explicit reason: the default one records a stack, which costs more than the whole wait.
  over.abort(null)
  return inTime
}

/** Growing pauses with jitter, so that many clients that failed at the same time do not retry at the same time. */
export interface Backoff {
  /** The pause before the next try. */
  nextMs(): number
  reset(): void
}

interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  readonly random?: () => number
}

export function createBackoff({ firstMs, maxMs, random = Math.random }: BackoffOptions): Backoff {
  let ceilingMs = firstMs
  return {
    nextMs() {
      const pause = ceilingMs * (0.5 + random() / 2)
      ceilingMs = Math.min(maxMs, ceilingMs * 2)
      return pause
    },
    reset() {
      ceilingMs = firstMs
    },
  }
}

/**
 * Lets one loop wait for "something may have happened". A ring that comes while nobody waits is remembered, so the loop
 * cannot miss it between looking and waiting.
 */
export interface Doorbell {
  ring(): void
  /** Forgets a remembered ring, for a loop that is about to look anyway. */
  forget(): void
  /** Resolves at the next ring (or at once after a remembered one), after `ms`, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export function createDoorbell(): Doorbell {
  let rung = false
  let wake: (() => void) | null = null
  return {
    ring() {
      rung = true
      wake?.()
    },
    forget() {
      rung = false
    },
    async wait(ms, signal) {
      if (!rung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const end = () => {
            clearTimeout(timer)
            signal.removeEventListener('abort', end)
            resolve()
          }
          const timer = setTimeout(end, ms)
          signal.addEventListener('abort', end)
          wake = end
        })
        wake = null
      }
      rung = false
    },
  }
}
