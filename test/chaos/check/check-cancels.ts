/** Holds the service to its answers to cancels: what was said to be canceled, or to be about to, has no other end. */
import type { ToldAt } from '../load/told.ts'
import { type Flaw, of } from './check-told.ts'

interface Parts {
  readonly told: readonly ToldAt[]
  /** How each job ended, by its id. */
  readonly ends: ReadonlyMap<string, string>
  /** Jobs of which an engine has finished an attempt; null: nobody kept books about that. */
  readonly finished: ReadonlySet<string> | null
}

export function checkCancels({ told, ends, finished }: Parts): Flaw[] {
  const flaws: Flaw[] = []
  for (const { id, status, at } of of(told, 'cancel')) {
    const end = ends.get(id)
    // A job that is lost altogether was found elsewhere.
    if (end === undefined || end === status || (status === 'canceling' && end === 'canceled')) continue
    // A run that the engine finished before the interrupt took hold is finished.
    const wasFinished = finished === null || finished.has(id)
    if (status === 'canceling' && (end === 'failed' || (end === 'succeeded' && wasFinished))) continue
    flaws.push({ kind: 'doubled', text: `a cancel of job ${id} was answered ${status}, and it ended ${end}`, id, at })
  }
  return flaws
}
