/**
 * Runs chores periodically: each at its own interval with a little jitter, and never before its last run has ended. A chore that
 * throws is logged and runs again at its next time. Disposing waits for those under way.
 *
 * A chore of the whole service runs in one of its processes, the one that leads; a chore of this process (caches, files that it
 * read) runs in each. A process that no longer leads is told by the signal and stops before its next step.
 */
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { isStoreAway } from '../../errors.ts'
import { type Leadership, UNCONTESTED } from '../../service-nodes/leadership.ts'

export interface Chore {
  readonly name: string
  readonly everyMs: number
  /** Whose it is: once in the whole service, or in each process. */
  readonly runs: 'once' | 'each'
  /** Checks the signal between batches when it may take long. */
  run(signal: AbortSignal): Promise<unknown>
}

interface HousekeepingDeps {
  readonly tasks: readonly Chore[]
  /** Whether this process does the chores of the service; left out: it is alone, so it does. */
  readonly leadership?: Leadership
  readonly log: Log
  readonly random?: () => number
}

interface Housekeeping extends AsyncDisposable {
  /** Harmless when called twice. */
  start(): void
}

// Keeps chores of the same interval from always running at the same moment.
const JITTER = 0.1

export function createHousekeeping(deps: HousekeepingDeps): Housekeeping {
  const { tasks, leadership = UNCONTESTED, log, random = Math.random } = deps
  const ending = new AbortController()
  let loops: Promise<void>[] = []

  async function run(task: Chore): Promise<void> {
    if (task.runs === 'each') return void (await task.run(ending.signal))
    if (!leadership.isHeld()) return
    const lost = leadership.signal()
    await task.run(lost === null ? ending.signal : AbortSignal.any([ending.signal, lost]))
  }

  async function loop(task: Chore): Promise<void> {
    while (true) {
      await sleep(task.everyMs * (1 + JITTER * random()), ending.signal)
      if (ending.signal.aborted) return
      try {
        await run(task)
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
