/**
 * Which recipes this process has stored for long enough: jobs of a workflow that runs again and again name theirs by its key alone,
 * and neither the names of classes and weights nor a write of their row come with every job.
 *
 * A recipe is kept longer than any job that has it. Its expiry is written ahead, and written again when it comes near that of a
 * job: about once a day for a workflow that runs all the time.
 */
import { BoundedMap } from '../../../../../lib/bounded-map.ts'
import type { NewJob } from '../../../../domain/jobs/job-store.ts'
import type { NewJobRow } from './new-job.ts'

const SLACK_MS = 86_400_000
const MAX_KNOWN = 2000

interface KnownRecipes {
  /** Of jobs that are stored together the first one of a recipe brings its row, the others name it. */
  toRows(jobs: readonly NewJob[]): NewJobRow[]
  /** Once the jobs are stored, their recipes are too. */
  learn(rows: readonly NewJobRow[]): void
}

export function createKnownRecipes(): KnownRecipes {
  const expiries = new BoundedMap<string, number>(MAX_KNOWN)

  function toRow({ recipe = null, again, ...job }: NewJob, brought: Set<string>): NewJobRow {
    if (recipe === null) return { ...job, recipe }
    const { key, title, terms } = recipe
    const known = expiries.get(`${job.accountId} ${key}`) ?? 0
    if (known >= job.expiresAt.getTime() + SLACK_MS)
      return { ...job, recipe: { key, title, terms: null, expiresAt: known } }
    const isFirst = !brought.has(key)
    brought.add(key)
    const expiresAt = job.expiresAt.getTime() + 2 * SLACK_MS
    return { ...job, recipe: { key, title, terms: isFirst ? terms : null, expiresAt } }
  }

  return {
    toRows(jobs) {
      const brought = new Set<string>()
      return jobs.map((job) => toRow(job, brought))
    },
    learn(rows) {
      for (const { accountId, recipe } of rows) {
        if (recipe !== null && recipe.terms !== null) expiries.set(`${accountId} ${recipe.key}`, recipe.expiresAt)
      }
    },
  }
}
