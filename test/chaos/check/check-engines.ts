/**
 * What the engines did, by logs of their own that outlive them: no claim of a job may have been begun or ended twice. A job may be handed
 * out again as the same attempt when Postgres crashed or was lost meanwhile: claims are not synced, so that the newest may be forgotten.
 */
import { createClient } from '../../../lib/postgres/driver.ts'
import { attemptsByPrompt } from '../../support/engines/jobs-by-prompt.ts'
import type { FaultRecord } from '../faults/strike.ts'
import type { ToldAt } from '../load/told.ts'
import type { World } from '../world/world.ts'
import { type Flaw, of } from './check-told.ts'

const RECORDS = `SELECT id::text, created_at::float8 AS "from", completed_at::float8 AS until FROM job_done`
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
  const lives = await readLives(world, told)
  const attemptOf = attemptsByPrompt(lives.keys())
  const losses = faults.filter(({ kind }) => LOSES_CLAIMS.has(kind))
  const mayBeForgotten = (jobId: string | null) => {
    const life = lives.get(jobId ?? '')
    return (
      life !== undefined &&
      losses.some(({ beganAt, mendedAt }) => beganAt < life.until && (mendedAt ?? life.until) > life.from)
    )
  }
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

interface Life {
  readonly from: number
  readonly until: number
}

/**
 * From when to when a job was under way, by what clients were told. A v1 client that gets no answer sends its prompt again as another job:
 * of the first one nobody was told, and its record has to do.
 */
async function readLives(world: World, told: readonly ToldAt[]): Promise<ReadonlyMap<string, Life>> {
  const lives = new Map<string, Life>()
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    for (const { id, from, until } of (await client.query(RECORDS)).rows) lives.set(id, { from, until })
  } finally {
    await client.end()
  }
  const ended = new Map(of(told, 'ended').map(({ id, at }) => [id, at]))
  for (const { id, at } of of(told, 'job'))
    lives.set(id, { from: at, until: ended.get(id) ?? Number.POSITIVE_INFINITY })
  return lives
}
