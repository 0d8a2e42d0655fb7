/**
 * The ways to create jobs on Postgres. Single submits of one turn of the event loop travel together, two batches at a time, each as one
 * pipeline. Submits of different accounts share a batch and must not fail each other: a batch that fails is run again in smaller ones,
 * first by account and then one by one. Only when the server is away all of them fail.
 */
import { ServiceError } from '../../../../../domain/errors.ts'
import { weighJob } from '../../../rows/jobs/new-job.ts'
import type { Decided, Steps } from '../../../statements/operation.ts'
import { answerAgain } from '../../../stores/jobs/answer-job.ts'
import { submitBatch } from '../../../stores/jobs/submit-batch.ts'
import { type Submit, type SubmitAnswer, submitJobs } from '../../../stores/jobs/submit-jobs.ts'
import type { SubmitSteps } from '../../../stores/jobs/submits.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { type Partitions, withPartitions } from '../../database/partitions.ts'
import { isTimeout } from '../../database/postgres-error.ts'
import { runOn } from '../../shared-stores.ts'
import { insertJobs } from './insert-jobs.ts'

interface SubmitDeps {
  readonly durable: Connected
  readonly partitions: Partitions
}

const MAX_SUBMITS = 256
const MAX_BATCH_LENGTH = 4 * 1024 * 1024
// While one waits for its commit to reach the disk, the next one is being prepared.
const BATCHES_UNDER_WAY = 2

export function createSubmitSteps(deps: SubmitDeps): SubmitSteps {
  const { durable, partitions } = deps
  const submit = createGather<Submit, () => SubmitAnswer>({
    run: (submits) => submitSafely(deps, submits),
    onBatch: durable.noteBatch,
    maxItems: MAX_SUBMITS,
    maxWeight: MAX_BATCH_LENGTH,
    weigh: ({ job }) => weighJob(job),
    maxRunning: BATCHES_UNDER_WAY,
    laneOf: ({ job }) => job.accountId,
  })

  async function inPartition<Result>(expiresAt: Date, run: () => Promise<Result>): Promise<Result> {
    await partitions.ensure(expiresAt.getTime())
    return withPartitions(partitions, [expiresAt.getTime()], run)
  }

  return {
    async submit(asked) {
      await partitions.ensure(asked.job.expiresAt.getTime())
      const answer = await submit(asked)
      return answer()
    },
    submitBatch: (batch) =>
      inPartition(batch.jobs[0]!.job.expiresAt, () =>
        carryOut(durable, (isAgain) => submitBatch(batch, insertJobs, isAgain)),
      ),
    answerAgain: (answered) =>
      inPartition(answered.job.expiresAt, () =>
        carryOut(durable, (isAgain) => answerAgain(answered, insertJobs, isAgain)),
      ),
  }
}

/** When the connection broke at the commit, nobody knows whether it took effect: the steps run again, and are told so. */
async function carryOut<Result>(
  durable: Connected,
  steps: (isAgain: boolean) => Steps<Decided<Result>>,
): Promise<Result> {
  let tries = 0
  const { result } = await durable.transaction((tx) => runOn(tx, steps(tries++ > 0)), {
    isRepeatable: true,
    last: (tx, decided) => runOn(tx, decided.write()),
  })
  return result
}

async function submitSafely(deps: SubmitDeps, submits: readonly Submit[]): Promise<readonly (() => SubmitAnswer)[]> {
  try {
    return (await submitTogether(deps, submits)).map((answer) => () => answer)
  } catch (error) {
    if (isOutage(error)) throw error
    const parts = splitUp(submits)
    if (parts.length === 1) {
      return [
        () => {
          throw error
        },
      ]
    }
    const answers = new Map<Submit, () => SubmitAnswer>()
    for (const part of parts) {
      for (const [index, answer] of (await submitSafely(deps, part)).entries()) answers.set(part[index], answer)
    }
    return submits.map((submit) => answers.get(submit) as () => SubmitAnswer)
  }
}

function splitUp(submits: readonly Submit[]): readonly (readonly Submit[])[] {
  const byAccount = Map.groupBy(submits, ({ job }) => job.accountId)
  return byAccount.size > 1 ? [...byAccount.values()] : submits.map((submit) => [submit])
}

function submitTogether({ durable, partitions }: SubmitDeps, submits: readonly Submit[]) {
  const expiries = submits.map(({ job }) => job.expiresAt.getTime())
  return withPartitions(partitions, expiries, () =>
    carryOut(durable, (isAgain) => submitJobs(submits, insertJobs, isAgain)),
  )
}

/** The server is away, or its disk is full: smaller batches would fail as well. */
function isOutage(error: unknown): boolean {
  return error instanceof ServiceError && !isTimeout(error)
}
