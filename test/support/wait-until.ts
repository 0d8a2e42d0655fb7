/**
 * Waits until something is so, by looking again and again. The give-up is there only to end a run that hangs, with words: it is
 * far longer than anything takes on a busy machine, so that no test depends on how fast anything is.
 */
import { setTimeout as pause } from 'node:timers/promises'

export const GIVE_UP_MS = 120_000
// Often at first, so that short waits stay short. Later by how long it took so far: looking costs a request and its answer in most tests.
const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 50
const PAUSES_PER_WAIT = 20

type Found<Value> = Exclude<Awaited<Value>, null | undefined | false | 0 | ''>

/** Resolves with the first truthy answer of `look`. `what`: what was waited for, for the message of a wait in vain. */
export async function waitUntil<Value>(
  look: () => Value,
  what: () => string = () => String(look),
): Promise<Found<Value>> {
  const startedAt = performance.now()
  while (true) {
    const found = await look()
    if (found) return found as Found<Value>
    const waitedMs = performance.now() - startedAt
    if (waitedMs > GIVE_UP_MS) throw new Error(`waited in vain for ${GIVE_UP_MS / 1000} s: ${what()}`)
    await pause(Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, waitedMs / PAUSES_PER_WAIT)))
  }
}
