/**
 * What the engines did, by logs of their own that outlive them: no claim of a job may have been begun or ended twice. A job may be handed
 * out again as the same attempt when Postgres crashed or was lost meanwhile: claims are not synced, so that the newest may be forgotten.
 */
import { promptIdOf } from '../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'
import type { ExecutionNews } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import type { FaultRecord } from '../faults/strike.ts'
import type { ToldAt } from '../load/told.ts'
import type { World } from '../world/world.ts'
import { type Flaw, of } from './check-told.ts'

const MAX_ATTEMPTS = 3
const MAX_ROUNDS = 3
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
  const jobs = toJobsByPrompt(told)
  const mayBeForgotten = createMayBeForgotten(told, faults)
  const begun = new Map<string, string[]>()
  const ended = new Map<string, string[]>()
  for (const engine of world.engines) {
    for (const news of engine.news()) {
      const places = news.what === 'begun' ? begun : news.status === 'success' ? ended : null
      places?.set(news.promptId, [...(places.get(news.promptId) ?? []), placeOf(news)])
    }
    const remaining = await engine.remaining()
    if (remaining > 0)
      flaws.push({ kind: 'left over', text: `${engine.name} has ${remaining} prompts`, id: null, at: null })
  }
  for (const [word, all] of [
    ['begun', begun],
    ['ended', ended],
  ] as const) {
    for (const [promptId, places] of all) {
      const id = jobs.get(promptId) ?? null
      const isOfOneClaim = new Set(places).size < places.length
      if (places.length > 1 && (isOfOneClaim || !mayBeForgotten(id)))
        flaws.push({
          kind: 'doubled',
          text: `one attempt of job ${id} was ${word} ${places.length} times`,
          id,
          at: null,
        })
    }
  }
  return { flaws, finished: new Set([...ended.keys()].flatMap((promptId) => jobs.get(promptId) ?? [])) }
}

/** Where its nodes save: each claim has a folder of its own. */
function placeOf({ graph }: ExecutionNews): string {
  return Object.values(graph)
    .map(({ inputs }) => String(inputs['filename_prefix'] ?? ''))
    .join(' ')
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

function toJobsByPrompt(told: readonly ToldAt[]): ReadonlyMap<string, string> {
  const jobs = new Map<string, string>()
  for (const { id } of of(told, 'job'))
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1)
      for (let round = 0; round < MAX_ROUNDS; round += 1) jobs.set(promptIdOf({ jobId: id, attempt, round }), id)
  return jobs
}
