/**
 * Which recipes this process has stored for long enough: jobs of a workflow that runs again and again name theirs by its key alone,
 * and neither the names of classes and weights nor a write of their row come with every job.
 *
 * A recipe is kept longer than any job that has it. Its expiry is written ahead, and written again when it comes near that of a
 * job: about once a day for a workflow that runs all the time.
 */
import { BoundedMap } from '../../../../../lib/bounded-map.ts'
import type { NewBatch } from '../../../../domain/jobs/batches/batch-store.ts'
import type { NewJob } from '../../../../domain/jobs/job-store.ts'

/** Terms are null for a recipe that is known to be stored. */
export type RecipeFields = readonly [key: string, terms: string | null, expiresAt: number]

interface KnownRecipes {
  toFields(job: NewJob): RecipeFields | null
  /** Once the job is stored, its recipe is too. */
  learn(job: NewJob, fields: RecipeFields): void
}

const SLACK_MS = 86_400_000
const MAX_KNOWN = 2000

export function createKnownRecipes(): KnownRecipes {
  const expiries = new BoundedMap<string, number>(MAX_KNOWN)
  return {
    toFields({ accountId, recipe = null, expiresAt }) {
      if (recipe === null) return null
      const { key, terms } = recipe
      const known = expiries.get(`${accountId} ${key}`) ?? 0
      if (known >= expiresAt.getTime() + SLACK_MS) return [key, null, known]
      return [key, terms, expiresAt.getTime() + 2 * SLACK_MS]
    },
    learn({ accountId }, [key, terms, expiresAt]) {
      if (terms !== null) expiries.set(`${accountId} ${key}`, expiresAt)
    },
  }
}

/** The same for all jobs of a batch: the first job of a recipe brings its row, the others name it. */
export function createBatchRecipes() {
  const known = createKnownRecipes()
  return {
    toFields({ jobs }: NewBatch): readonly (RecipeFields | null)[] {
      const brought = new Set<string>()
      return jobs.map(({ job }) => {
        const fields = known.toFields(job)
        if (fields === null || fields[1] === null) return fields
        const [key, , expiresAt] = fields
        if (brought.has(key)) return [key, null, expiresAt]
        brought.add(key)
        return fields
      })
    },
    learn({ jobs }: NewBatch, recipes: readonly (RecipeFields | null)[], accepted: number): void {
      for (const [index, { job }] of jobs.slice(0, accepted).entries()) {
        const fields = recipes[index] ?? null
        if (fields !== null) known.learn(job, fields)
      }
    },
  }
}
