/** What the engines did, by logs of their own that outlive them: no attempt of a job may have been begun or ended twice. */
import { promptIdOf } from '../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'
import type { ToldAt } from '../load/told.ts'
import type { World } from '../world/world.ts'
import { type Flaw, of } from './check-told.ts'

const MAX_ATTEMPTS = 3
const MAX_ROUNDS = 3

export interface CheckedEngines {
  readonly flaws: readonly Flaw[]
  /** Jobs of which an engine has finished an attempt. */
  readonly finished: ReadonlySet<string>
}

export async function checkEngines(world: World, told: readonly ToldAt[]): Promise<CheckedEngines> {
  const flaws: Flaw[] = []
  const jobs = toJobsByPrompt(told)
  const begun = new Map<string, number>()
  const ended = new Map<string, number>()
  for (const engine of world.engines) {
    for (const { what, promptId, status } of engine.news()) {
      const counts = what === 'begun' ? begun : status === 'success' ? ended : null
      counts?.set(promptId, (counts.get(promptId) ?? 0) + 1)
    }
    const remaining = await engine.remaining()
    if (remaining > 0)
      flaws.push({ kind: 'left over', text: `${engine.name} has ${remaining} prompts`, id: null, at: null })
  }
  for (const [word, counts] of [
    ['begun', begun],
    ['ended', ended],
  ] as const) {
    for (const [promptId, times] of counts) {
      const id = jobs.get(promptId) ?? null
      if (times > 1)
        flaws.push({ kind: 'doubled', text: `one attempt of job ${id} was ${word} ${times} times`, id, at: null })
    }
  }
  return { flaws, finished: new Set([...ended.keys()].flatMap((promptId) => jobs.get(promptId) ?? [])) }
}

function toJobsByPrompt(told: readonly ToldAt[]): ReadonlyMap<string, string> {
  const jobs = new Map<string, string>()
  for (const { id } of of(told, 'job'))
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1)
      for (let round = 0; round < MAX_ROUNDS; round += 1) jobs.set(promptIdOf({ jobId: id, attempt, round }), id)
  return jobs
}
