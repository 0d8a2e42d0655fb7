/**
 * Numbers for output names, answered from memory once a name is known: this process is the only one that writes, and a number
 * reaches the disk before any output that bears it, because the writer keeps the order of what it is asked. So a run does not
 * wait for the disk here; the first number of a name still does.
 */
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import type { StoreChannels } from './store-channels.ts'

// Each is one name prefix of one account; a forgotten one is read again.
const MAX_KNOWN = 10_000

export function createReserveOutputNumbers(write: StoreChannels['write']): JobStore['reserveOutputNumbers'] {
  const next = new Map<string, number>()
  /** First numbers that are on their way: whoever comes meanwhile waits for them. */
  const learning = new Map<string, Promise<void>>()

  return async function reserveOutputNumbers(accountId, folder, prefix, count) {
    const key = JSON.stringify([accountId, folder, prefix])
    while (learning.has(key)) await learning.get(key)
    const known = next.get(key)
    const reserved = write.call('reserveOutputNumbers', { accountId, folder, prefix, count })
    if (known === undefined) {
      learning.set(key, learn(key, reserved, count))
      return reserved
    }
    next.set(key, known + count)
    // What was not written is asked for anew next time.
    reserved.catch(() => next.delete(key))
    return known
  }

  async function learn(key: string, reserved: Promise<number>, count: number): Promise<void> {
    try {
      const first = await reserved
      const [oldest] = next.keys()
      if (next.size >= MAX_KNOWN && oldest !== undefined) next.delete(oldest)
      next.set(key, first + count)
    } catch {
      // Whoever asked hears of it.
    } finally {
      learning.delete(key)
    }
  }
}
