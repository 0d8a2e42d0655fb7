/** The ways to create jobs on SQLite: each is one operation of the writer, and shares its transaction with whatever else is asked for. */
import { weighJob } from '../../rows/jobs/new-job.ts'
import { carryOut, defineStore, durable } from '../../statements/operation.ts'
import { answerAgain } from '../../stores/jobs/answer-job.ts'
import { submitBatch } from '../../stores/jobs/submit-batch.ts'
import { submitJobs } from '../../stores/jobs/submit-jobs.ts'
import type { SubmitSteps } from '../../stores/jobs/submits.ts'
import { insertJobs } from '../operations/jobs/insert-jobs.ts'

export const submits = defineStore<SubmitSteps>('submits', {
  submit: durable(
    function* (submit) {
      const [answer] = yield* carryOut(submitJobs([submit], insertJobs))
      return answer
    },
    { weigh: ({ job }) => weighJob(job) },
  ),
  submitBatch: durable((batch) => carryOut(submitBatch(batch, insertJobs)), {
    weigh: ({ jobs }) => jobs.reduce((sum, { job }) => sum + weighJob(job), 0),
  }),
  answerAgain: durable((answered) => carryOut(answerAgain(answered, insertJobs)), {
    weigh: ({ job }) => weighJob(job),
  }),
})
