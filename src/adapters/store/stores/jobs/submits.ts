/** The ways to create jobs, as the ports have them, over the steps of a store. */
import type { BatchStore } from '../../../../domain/jobs/batches/batch-store.ts'
import type { AnswerOutcome, JobStore } from '../../../../domain/jobs/job-store.ts'
import { toQueuedJob } from '../../../../domain/jobs/submit/submit-job.ts'
import { createKnownRecipes } from '../../rows/jobs/known-recipes.ts'
import type { AnsweredJob } from './answer-job.ts'
import type { SubmittedBatch } from './submit-batch.ts'
import type { Submit, SubmitAnswer } from './submit-jobs.ts'

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
