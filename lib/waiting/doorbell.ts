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
