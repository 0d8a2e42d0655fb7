import type { Ticker } from '../../lib/clock.ts'

export interface ManualTicker extends Ticker {
  /** Lets time pass, running what is due in between. */
  advance(ms: number): void
  /** How many things wait for time to pass. */
  count(): number
}

export function createManualTicker(): ManualTicker {
  interface Entry {
    /** null: it comes once. */
    readonly intervalMs: number | null
    readonly run: () => void
    dueAt: number
  }
  const entries = new Set<Entry>()
  let now = 1000
  const add = (entry: Entry) => {
    entries.add(entry)
    return () => void entries.delete(entry)
  }
  return {
    now: () => now,
    every: (intervalMs, run) => add({ intervalMs, run, dueAt: now + intervalMs }),
    after: (delayMs, run) => add({ intervalMs: null, run, dueAt: now + delayMs }),
    advance(ms) {
      const end = now + ms
      for (;;) {
        const due = [...entries].filter((entry) => entry.dueAt <= end).sort((a, b) => a.dueAt - b.dueAt)[0]
        if (due === undefined) break
        now = due.dueAt
        if (due.intervalMs === null) entries.delete(due)
        else due.dueAt += due.intervalMs
        due.run()
      }
      now = end
    },
    count: () => entries.size,
  }
}
