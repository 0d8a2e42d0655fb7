/** Finds out whether the store answers, for readiness: one small read, whose answer is reused for a moment. */
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import type { MetaStore } from '../../domain/store.ts'

const FRESH_MS = 1_000
const ANSWER_WITHIN_MS = 5_000

/** False when the store refuses or is silent; never rejects. `now` in milliseconds, never going back. */
export function createStoreProbe(store: Pick<MetaStore, 'readMeta'>, now: () => number): () => Promise<boolean> {
  let known = { answers: true, at: Number.NEGATIVE_INFINITY }
  let asking: Promise<boolean> | null = null

  async function ask(): Promise<boolean> {
    const read = store.readMeta('readiness').then(
      () => true,
      () => false,
    )
    const answers = (await settlesWithin(read, ANSWER_WITHIN_MS)) && (await read)
    known = { answers, at: now() }
    asking = null
    return answers
  }

  return async () => {
    if (now() - known.at < FRESH_MS) return known.answers
    asking ??= ask()
    return asking
  }
}
