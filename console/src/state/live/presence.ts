/**
 * Whether somebody looks: a tab that was hidden for ten seconds gives its streams up. A browser has six connections to a service, and
 * a person has dozens of tabs.
 */
import { signal } from '@preact/signals'

const HIDDEN_MS = 10_000

export const isWatched = signal(true)

export function followPresence(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.visibilityState === 'visible') isWatched.value = true
    else
      timer = setTimeout(() => {
        isWatched.value = false
      }, HIDDEN_MS)
  }
  document.addEventListener('visibilitychange', look)
  look()
}
