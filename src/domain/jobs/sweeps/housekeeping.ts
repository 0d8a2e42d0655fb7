/**
 * Runs chores periodically: each at its own interval with a little jitter, and never before its last run has ended. A chore that
 * throws is logged and runs again at its next time. Disposing waits for those under way.
 */
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { isStoreAway } from '../../errors.ts'

export interface Chore {
  readonly name: string
  readonly everyMs: number
  /** Checks the signal between batches when it may take long. */
  run(signal: AbortSignal): Promise<unknown>
}

interface HousekeepingDeps {
  readonly tasks: readonly Chore[]
  readonly log: Log
  readonly random?: () => number
}

interface Housekeeping extends AsyncDisposable {
  /** Harmless when called twice. */
  start(): void
}

// Keeps chores of the same interval from always running at the same moment.
const JITTER = 0.1

export function createHousekeeping({ tasks, log, random = Math.random }: HousekeepingDeps): Housekeeping {
  const ending = new AbortController()
  let loops: Promise<void>[] = []

  async function loop(task: Chore): Promise<void> {
    while (true) {
      await sleep(task.everyMs * (1 + JITTER * random()), ending.signal)
      if (ending.signal.aborted) return
      try {
        await task.run(ending.signal)
      } catch (error) {
        const facts = { err: error, task: task.name }
        if (isStoreAway(error)) log.debug(facts, 'a chore has to wait for the store, which is away')
        else log.error(facts, 'a chore failed; it runs again at its next time')
      }
    }
  }

  return {
    start() {
      if (loops.length === 0 && !ending.signal.aborted) loops = tasks.map(loop)
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await Promise.all(loops)
    },
  }
}
