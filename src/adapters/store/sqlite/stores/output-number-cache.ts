/**
 * Numbers for output names, answered from memory once a name is known: this process is the only one that writes. Numbers
 * that were given out are stored right before the first output that carries one of them, in the same batch: a run waits for
 * the disk only for the first number of a name. A number that a crash loses was on no output.
 */
import { BoundedMap } from '../../../../../lib/bounded-map.ts'
import type { JobStore } from '../../../../domain/jobs/job-store.ts'

interface Reservation {
  readonly accountId: string
  readonly folder: string
  readonly prefix: string
  readonly count: number
}

interface OutputNumbers {
  readonly reserve: JobStore['reserveOutputNumbers']
  /** Stores the numbers given out so far. To be called right before outputs are written. */
  writeDown(): void
}

// Each is one name prefix of one account; a forgotten one is read again.
const MAX_KNOWN = 10_000
// Jobs that reserve and never write any output must not gather for ever.
const MAX_GIVEN = 256

export function createOutputNumbers(store: JobStore['reserveOutputNumbers']): OutputNumbers {
  const next = new BoundedMap<string, number>(MAX_KNOWN)
  /** First numbers that are being asked for: later callers wait for them. */
  const learning = new Map<string, Promise<void>>()
  /** Given out and not yet stored. */
  let given = new Map<string, Reservation>()

  async function reserve(accountId: string, folder: string, prefix: string, count: number): Promise<number> {
    const key = JSON.stringify([accountId, folder, prefix])
    while (learning.has(key)) await learning.get(key)
    const known = next.get(key)
    if (known === undefined) {
      // The name may have been forgotten while numbers of it were not stored yet.
      writeDown()
      const reserved = store(accountId, folder, prefix, count)
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
    for (const [key, { accountId, folder, prefix, count }] of all) {
      // A name whose numbers could not be stored is asked for again next time.
      store(accountId, folder, prefix, count).catch(() => next.delete(key))
    }
  }

  async function learn(key: string, reserved: Promise<number>, count: number): Promise<void> {
    try {
      const first = await reserved
      next.set(key, first + count)
    } catch {
      // The caller of `reserve` gets the error.
    } finally {
      learning.delete(key)
    }
  }

  return { reserve, writeDown }
}
