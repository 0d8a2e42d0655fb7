/**
 * Why a server that answers must not be given work. Prompts of ours may be there although nobody follows them any more: of
 * attempts that were given up, of a process before us, of a node that cannot be interrupted. What of them waits is withdrawn and
 * what runs is interrupted, again and again, until none is there. And the queue of a server may stand still behind one and the
 * same prompt: it is left alone until that moves.
 */
import { performance } from 'node:perf_hooks'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { placeIn, type Stopper } from '../run/stop-run.ts'
import type { ComfyApi, Queue, QueueEntry } from '../wire/comfy-api.ts'

export interface Fitness {
  /** In words for an operator; null: it may be given work. */
  unfit(): string | null
  /** Nobody follows this prompt any more. It may be there, and it may still arrive. */
  leave(promptId: string): void
  isLeft(promptId: string): boolean
  /** Nothing of the queue moved for too long: it is left alone until something else runs there. */
  freeze(queue: Queue): void
  /** The process behind the address is another one: it knows nothing of what was left. */
  startAnew(): void
  /** Takes over what an earlier process of this service left there. Throws CallError. */
  adopt(): Promise<void>
  /** Has an end made to what was left, and sees whether the queue moves. Asks nothing where there is nothing to see to. Throws CallError. */
  look(): Promise<void>
}

export interface FitnessDeps {
  readonly api: Pick<ComfyApi, 'queue' | 'forgetHistory'>
  readonly bounds: Pick<ComfyBounds, 'vanishedMs' | 'stopGraceMs'>
  readonly stopper: Stopper
  /** Whose prompts are an earlier process's of this service, by the id of the client that posted them. */
  isOrphan(clientId: string): boolean
  onChange(): void
  /** Something of ours runs on, whatever it is told. */
  onStubborn(): void
  onAdopted(count: number): void
}

interface Leftover {
  readonly since: number
  /** A prompt whose submit got no answer may arrive a moment later than the question for it. */
  absentSince: number | null
}

const LEFT_RUNNING = 'a run of ours that was given up is still there'
const STANDS_STILL = 'its queue stands still: the same prompt runs for too long'

export function createFitness(deps: FitnessDeps): Fitness {
  const { api, bounds, stopper } = deps
  const left = new Map<string, Leftover>()
  /** What ran when the queue was found to stand still. */
  let frozen: string | null = null
  let isStubborn = false

  function unfit(): string | null {
    if (left.size > 0) return LEFT_RUNNING
    return frozen === null ? null : STANDS_STILL
  }

  /** Tells when the answer to `unfit` is another one than before. */
  function changing(act: () => void): void {
    const before = unfit()
    act()
    if (unfit() !== before) deps.onChange()
  }

  function add(promptId: string): void {
    if (!left.has(promptId)) left.set(promptId, { since: performance.now(), absentSince: null })
  }

  /** What has been absent for long enough. */
  function findGone(queue: Queue): string[] {
    const now = performance.now()
    return [...left].flatMap(([promptId, leftover]) => {
      if (placeIn(queue, promptId) !== null) leftover.absentSince = null
      else leftover.absentSince ??= now
      return leftover.absentSince !== null && now - leftover.absentSince >= bounds.vanishedMs ? [promptId] : []
    })
  }

  async function settle(queue: Queue): Promise<void> {
    const gone = findGone(queue)
    // Before anything else runs there: an attempt that was given back comes again under the same id, and must not find this end.
    if (gone.length > 0) await api.forgetHistory(gone)
    changing(() => {
      for (const promptId of gone) left.delete(promptId)
      if (left.size === 0) isStubborn = false
      if (frozen !== null && frozen !== runningIn(queue)) frozen = null
    })
  }

  async function press({ running, pending }: Queue): Promise<void> {
    const isOurs = ({ promptId }: QueueEntry) => left.has(promptId)
    // Those that wait first: ending the one that runs would start the next.
    for (const { promptId } of pending.filter(isOurs)) await stopper.press(promptId, 'pending')
    for (const { promptId } of running.filter(isOurs)) await stopper.press(promptId, 'running')
    const now = performance.now()
    const isLate = ({ promptId }: QueueEntry) => now - (left.get(promptId)?.since ?? now) > bounds.stopGraceMs
    if (isStubborn || !running.some(isLate)) return
    isStubborn = true
    deps.onStubborn()
  }

  return {
    unfit,
    leave: (promptId) => changing(() => add(promptId)),
    isLeft: (promptId) => left.has(promptId),
    freeze: (queue) =>
      changing(() => {
        frozen = runningIn(queue)
      }),
    startAnew: () =>
      changing(() => {
        left.clear()
        frozen = null
        isStubborn = false
      }),
    async adopt() {
      const { running, pending } = await api.queue({})
      const orphans = [...running, ...pending].filter(({ clientId }) => clientId !== null && deps.isOrphan(clientId))
      const found = orphans.filter(({ promptId }) => !left.has(promptId))
      if (found.length === 0) return
      changing(() => {
        for (const { promptId } of found) add(promptId)
      })
      deps.onAdopted(found.length)
    },
    async look() {
      if (unfit() === null) return
      const queue = await api.queue({})
      await press(queue)
      await settle(queue)
    },
  }
}

export function runningIn({ running }: Queue): string {
  return running
    .map(({ promptId }) => promptId)
    .toSorted()
    .join(' ')
}
