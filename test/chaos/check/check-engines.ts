/**
 * What the engines did, by logs of their own that outlive them: no claim of a job may have been begun or ended twice. A job may be handed
 * out again as the same attempt when Postgres crashed or was lost meanwhile: claims are not synced, so that the newest may be forgotten.
 */
import { attemptsByPrompt } from '../../support/engines/jobs-by-prompt.ts'
import type { FaultRecord } from '../faults/strike.ts'
import type { ToldAt } from '../load/told.ts'
import type { World } from '../world/world.ts'
import { type Flaw, of } from './check-told.ts'

const LOSES_CLAIMS: ReadonlySet<string> = new Set([
  'crash Postgres',
  'fail over to the standby',
  'fail over to a standby that was held up',
])

export interface CheckedEngines {
  readonly flaws: readonly Flaw[]
  /** Jobs of which an engine has finished an attempt. */
  readonly finished: ReadonlySet<string>
}

export async function checkEngines(
  world: World,
  { told, faults }: { readonly told: readonly ToldAt[]; readonly faults: readonly FaultRecord[] },
): Promise<CheckedEngines> {
  const flaws: Flaw[] = []
  const attemptOf = attemptsByPrompt(of(told, 'job').map(({ id }) => id))
  const mayBeForgotten = createMayBeForgotten(told, faults)
  const begun = new Map<string, string[]>()
  const ended = new Map<string, string[]>()
  const finished = new Set<string>()
  for (const engine of world.engines) {
    for (const { what, promptId, ...news } of engine.news()) {
      const isSuccess = what !== 'begun' && news.status === 'success'
      const at = attemptOf(promptId)
      if (at !== null && isSuccess) finished.add(at.jobId)
      const key = at === null ? promptId : `${at.jobId} ${at.attempt} ${at.round}`
      const prompts = what === 'begun' ? begun : isSuccess ? ended : null
      prompts?.set(key, [...(prompts.get(key) ?? []), promptId])
    }
    const remaining = await engine.remaining()
    if (remaining > 0)
      flaws.push({ kind: 'left over', text: `${engine.name} has ${remaining} prompts`, id: null, at: null })
  }
  for (const [word, all] of [
    ['begun', begun],
    ['ended', ended],
  ] as const) {
    for (const [key, prompts] of all) {
      const id = attemptOf(prompts[0] ?? '')?.jobId ?? null
      const isOfOneClaim = new Set(prompts).size < prompts.length
      if (prompts.length > 1 && (isOfOneClaim || !mayBeForgotten(id)))
        flaws.push({ kind: 'doubled', text: `attempt ${key} was ${word} ${prompts.length} times`, id, at: null })
    }
  }
  return { flaws, finished }
}

/** Whether Postgres was lost while the job was under way. */
function createMayBeForgotten(
  told: readonly ToldAt[],
  faults: readonly FaultRecord[],
): (jobId: string | null) => boolean {
  const losses = faults.filter(({ kind }) => LOSES_CLAIMS.has(kind))
  const submitted = new Map(of(told, 'job').map(({ id, at }) => [id, at]))
  const ended = new Map(of(told, 'ended').map(({ id, at }) => [id, at]))
  return (jobId) => {
    const from = submitted.get(jobId ?? '')
    const until = ended.get(jobId ?? '') ?? Number.POSITIVE_INFINITY
    return from !== undefined && losses.some(({ beganAt, mendedAt }) => beganAt < until && (mendedAt ?? until) > from)
  }
}
