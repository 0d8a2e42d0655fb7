/**
 * The slots that running tasks hold at their provider. A task that is polled to its end gives its slot back then; one that is no
 * longer polled gives it back when its time is over.
 */
import { MAX_TIMER_MS } from '../../../../lib/waiting/sleep.ts'

export interface TaskSlots {
  hold(task: string, giveBack: () => void, forMs: number): void
  release(task: string): void
  clear(): void
}

export function createTaskSlots(): TaskSlots {
  const held = new Map<string, { readonly giveBack: () => void; readonly timer: NodeJS.Timeout }>()
  function release(task: string): void {
    const slot = held.get(task)
    if (slot === undefined) return
    held.delete(task)
    clearTimeout(slot.timer)
    slot.giveBack()
  }
  return {
    hold(task, giveBack, forMs) {
      // A provider that gives the same id twice has one task, not two.
      release(task)
      const timer = setTimeout(() => release(task), Math.min(Math.max(0, forMs), MAX_TIMER_MS))
      held.set(task, { giveBack, timer })
    },
    release,
    clear() {
      for (const task of [...held.keys()]) release(task)
    },
  }
}
