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
