/** Waits that a signal can end early. A sleep never rejects, so a loop checks its signal afterwards. */

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
