/**
 * Numbers for output names, answered from memory once a name is known: this process is the only one that writes. Numbers that
 * were given out are written down before any output that bears one of them, and not before: so they travel with the outputs,
 * and a run waits for the disk only at the first number of a name. A number that a crash takes along was on no output.
 */
import type { JobStore } from '../../../../domain/jobs/job-store.ts'
import type { ReserveInput } from '../operations/assets/reserve-output-numbers.ts'
import type { StoreChannels } from './store-channels.ts'

export interface OutputNumbers {
  readonly reserve: JobStore['reserveOutputNumbers']
  /** To be called right before outputs are written. */
  writeDown(): void
}

// Each is one name prefix of one account; a forgotten one is read again.
const MAX_KNOWN = 10_000
// Jobs that reserve and never write any output must not gather for ever.
const MAX_GIVEN = 256

export function createOutputNumbers(write: StoreChannels['write']): OutputNumbers {
  const next = new Map<string, number>()
  /** First numbers that are on their way: whoever comes meanwhile waits for them. */
  const learning = new Map<string, Promise<void>>()
  /** Given out and not yet written down. */
  let given = new Map<string, ReserveInput>()

  async function reserve(accountId: string, folder: string, prefix: string, count: number): Promise<number> {
    const key = JSON.stringify([accountId, folder, prefix])
    while (learning.has(key)) await learning.get(key)
    const known = next.get(key)
    if (known === undefined) {
      // It may have been forgotten with numbers that the store does not know of yet.
      writeDown()
      const reserved = write.call('reserveOutputNumbers', { accountId, folder, prefix, count })
      learning.set(key, learn(key, reserved, count))
      return reserved
    }
    next.set(key, known + count)
    given.set(key, { accountId, folder, prefix, count: count + (given.get(key)?.count ?? 0) })
    if (given.size >= MAX_GIVEN) writeDown()
    return known
  }

  function writeDown(): void {
    const all = given
    given = new Map()
    for (const [key, input] of all) {
      // What was not written is asked for anew next time.
      write.call('reserveOutputNumbers', input).catch(() => next.delete(key))
    }
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

  return { reserve, writeDown }
}
