/**
 * Looks for a run that a server may have from a process before this one: in its queue, and in its history. It is in neither only after
 * the time in which a finished run may still appear, and a server that cannot be asked is asked again for as long as any run is
 * followed without an answer: one that refuses connections is gone, and its runs with it.
 */
import { performance } from 'node:perf_hooks'
import { sleep } from '../../../../../lib/waiting/sleep.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from '../wire/comfy-api.ts'
import { CallError, isNobodyThere } from '../wire/comfy-http.ts'
import { type PromptKey, promptIdOf, roundOf } from './comfy-prompt.ts'

export interface FoundRun {
  readonly promptId: string
  readonly round: number
  /** To whom the server tells how it goes; null: it has ended. */
  readonly clientId: string | null
}

interface FindDeps {
  readonly api: Pick<ComfyApi, 'queue' | 'history'>
  readonly bounds: Pick<ComfyBounds, 'vanishedMs' | 'pollFirstMs' | 'unreachableMs' | 'refusedMs'>
  /** Ends the search. */
  readonly gone: AbortSignal
}

/** One attempt submits its graph once, once more with its files elsewhere, and once more for outputs that did not come. */
const LAST_ROUND = 2

/** null: the server does not have it. */
export async function findRun(deps: FindDeps, run: Omit<PromptKey, 'round'>): Promise<FoundRun | null> {
  const { bounds, gone } = deps
  let answeredAt = performance.now()
  let absentSince: number | null = null
  let refusedSince: number | null = null
  while (!gone.aborted) {
    try {
      const found = (await findInQueue(deps, run)) ?? (await findInHistory(deps, run))
      if (found !== null) return found
      answeredAt = performance.now()
      refusedSince = null
      absentSince ??= answeredAt
      if (answeredAt - absentSince >= bounds.vanishedMs) return null
    } catch (error) {
      if (!(error instanceof CallError)) throw error
      const now = performance.now()
      refusedSince = isNobodyThere(error) ? (refusedSince ?? now) : null
      const isGone = refusedSince !== null && now - refusedSince >= bounds.refusedMs
      if (isGone || now - answeredAt >= bounds.unreachableMs) throw error
    }
    await sleep(bounds.pollFirstMs, gone)
  }
  return null
}

async function findInQueue({ api }: FindDeps, run: Omit<PromptKey, 'round'>): Promise<FoundRun | null> {
  const { running, pending } = await api.queue({})
  const found = [...running, ...pending].flatMap(({ promptId, clientId }) => {
    const round = roundOf(promptId, run)
    return round === null ? [] : [{ promptId, round, clientId }]
  })
  return found.toSorted((one, other) => other.round - one.round)[0] ?? null
}

async function findInHistory({ api }: FindDeps, run: Omit<PromptKey, 'round'>): Promise<FoundRun | null> {
  for (let round = LAST_ROUND; round >= 0; round--) {
    const promptId = promptIdOf({ ...run, round })
    if ((await api.history(promptId, {})) !== null) return { promptId, round, clientId: null }
  }
  return null
}
