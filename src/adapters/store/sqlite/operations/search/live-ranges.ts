/**
 * Jobs that have not ended, in a search by what jobs share. The indexes of recipes and titles hold ended jobs only, because an entry is
 * cheaper where nobody waits for it than in a submit; so live jobs are walked by time and asked one by one.
 */
import { JOB_STATUSES, type JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { isHeld, MAX_RANGES, type SearchPlan, type SearchRange } from '../../../search/search-plan.ts'

interface Sought {
  /** The account that is searched; null: all. */
  readonly scope: string | null
  readonly statuses: readonly JobStatus[] | null
  readonly text: string | null
  /** A live job that is looked for has one of them, or the text in its title. */
  readonly recipes: readonly string[]
  /** Accounts whose jobs may wait. */
  readonly queues: readonly string[]
}

export function withLive(plan: SearchPlan, { scope, statuses, text, recipes, queues }: Sought): SearchPlan {
  const isAskedApart = text !== null || plan.ranges.some(({ by }) => by === 'recipe')
  if (!isAskedApart) return plan
  const sought = JSON.stringify(recipes)
  const wanted = statuses ?? JOB_STATUSES
  const held = wanted.filter(isHeld).map((status): SearchRange => {
    return { accountId: scope, by: scope === null ? 'live_held' : 'live', values: [status, text, sought] }
  })
  const owners = queues.length <= MAX_RANGES ? queues : [null]
  const queued = wanted.includes('queued')
    ? owners.map((accountId): SearchRange => ({ accountId, by: 'live', values: ['queued', text, sought] }))
    : []
  return { ...plan, ranges: [...plan.ranges, ...held, ...queued] }
}
