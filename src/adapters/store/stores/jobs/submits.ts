/** The ways to create jobs, as the ports have them, over the steps of a store. */
import { BoundedMap } from '../../../../../lib/bounded-map.ts'
import type { BatchStore } from '../../../../domain/jobs/batches/batch-store.ts'
import type { AnswerOutcome, JobStore, NewJob } from '../../../../domain/jobs/job-store.ts'
import { toQueuedJob } from '../../../../domain/jobs/submit/submit-job.ts'
import type { NewJobRow } from '../../rows/jobs/new-job.ts'
import type { AnsweredJob } from './answer-job.ts'
import type { SubmittedBatch } from './submit-batch.ts'
import type { Submit, SubmitAnswer } from './submit-jobs.ts'

/**
 * Which recipes this process has stored for long enough: jobs of a workflow that runs again and again name theirs by its key alone,
 * and neither the names of classes and weights nor a write of their row come with every job.
 *
 * A recipe is kept longer than any job that has it. Its expiry is written ahead, and written again when it comes near that of a
 * job: about once a day for a workflow that runs all the time.
 */
const SLACK_MS = 86_400_000
const MAX_KNOWN = 2000

interface KnownRecipes {
  /** Of jobs that are stored together the first one of a recipe brings its row, the others name it. */
  toRows(jobs: readonly NewJob[]): NewJobRow[]
  /** Once the jobs are stored, their recipes are too. */
  learn(rows: readonly NewJobRow[]): void
}

function createKnownRecipes(): KnownRecipes {
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

export interface SubmitSteps {
  submit(submit: Submit): Promise<SubmitAnswer>
  submitBatch(batch: SubmittedBatch): ReturnType<BatchStore['submit']>
  answerAgain(answered: AnsweredJob): Promise<AnswerOutcome>
}

export function createSubmits(steps: SubmitSteps): Pick<JobStore, 'submit' | 'answerAgain'> {
  const recipes = createKnownRecipes()
  return {
    async submit(job, claim) {
      const [row] = recipes.toRows([job])
      const answer = await steps.submit({ job: row, claim })
      if (answer.outcome !== 'queued') return answer
      recipes.learn([row])
      return { outcome: 'queued', job: toQueuedJob(job, answer.position) }
    },
    async answerAgain(job, again, claim) {
      const [row] = recipes.toRows([job])
      const outcome = await steps.answerAgain({ job: row, again, claim })
      if (outcome.outcome === 'answered') recipes.learn([row])
      return outcome
    },
  }
}

export function createBatchSubmits({ submitBatch }: Pick<SubmitSteps, 'submitBatch'>): BatchStore['submit'] {
  const recipes = createKnownRecipes()
  return async ({ jobs, ...batch }, claim) => {
    const rows = recipes.toRows(jobs.map(({ job }) => job))
    const items = jobs.map(({ index, job }, place) => ({ index, job: rows[place], again: job.again ?? null }))
    const outcome = await submitBatch({ ...batch, jobs: items, claim })
    if (outcome.outcome === 'queued') recipes.learn(rows.slice(0, outcome.accepted))
    return outcome
  }
}
