/**
 * The service's time, ticking here. The offset comes from the stream's greeting and from lists, so that a browser whose clock is
 * wrong still shows right spans.
 */
import { signal } from '@preact/signals'

let offsetMs = 0

export function setServerTime(iso: string): void {
  const at = Date.parse(iso)
  if (Number.isFinite(at)) offsetMs = at - Date.now()
}

export function serverNow(): number {
  return Date.now() + offsetMs
}

/** Changes once a second while somebody looks; whoever reads it is drawn again. */
export const second = signal(serverNow())

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') second.value = serverNow()
  }, 1000)
  document.addEventListener('visibilitychange', () => {
    second.value = serverNow()
  })
}
