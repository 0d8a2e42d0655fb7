/**
 * The places that running tasks hold at their provider. A task that is polled to its end gives its place back then; one that
 * nobody follows any longer gives it back when its time is over.
 */
import { MAX_TIMER_MS } from '../../../../lib/sleep.ts'

export interface TaskPlaces {
  hold(task: string, release: () => void, untilMs: number): void
  leave(task: string): void
  clear(): void
}

export function createTaskPlaces(): TaskPlaces {
  const held = new Map<string, { readonly release: () => void; readonly timer: NodeJS.Timeout }>()
  function leave(task: string): void {
    const place = held.get(task)
    if (place === undefined) return
    held.delete(task)
    clearTimeout(place.timer)
    place.release()
  }
  return {
    hold(task, release, untilMs) {
      // A provider that gives the same id twice has one task, not two.
      leave(task)
      const timer = setTimeout(() => leave(task), Math.min(Math.max(0, untilMs), MAX_TIMER_MS))
      held.set(task, { release, timer })
    },
    leave,
    clear() {
      for (const task of [...held.keys()]) leave(task)
    },
  }
}
