/**
 * Gathers submits into batches. Submits of different accounts share a batch and must not fail each other: a batch that fails is
 * run again in smaller ones, first by account and then one by one. Only when the server is away all of them fail.
 */
import { ServiceError } from '../../../../../domain/errors.ts'
import type { JobStore, NewJob } from '../../../../../domain/jobs/job-store.ts'
import { createKnownRecipes } from '../../../rows/jobs/known-recipes.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { type Partitions, withPartitions } from '../../database/partitions.ts'
import { isTimeout } from '../../database/postgres-error.ts'
import { type Submit, type SubmitAnswer, submitTogether } from './submit-job.ts'

interface SubmitDeps {
  readonly durable: Connected
  readonly partitions: Partitions
}

const MAX_SUBMITS = 256
const MAX_BATCH_LENGTH = 4 * 1024 * 1024
// While one waits for its commit to reach the disk, the next one is being prepared.
const BATCHES_UNDER_WAY = 2

export function createSubmits(deps: SubmitDeps): JobStore['submit'] {
  const submit = createGather<Submit, SubmitAnswer>({
    run: (submits) => submitSafely(deps, submits),
    onBatch: deps.durable.noteBatch,
    maxItems: MAX_SUBMITS,
    maxWeight: MAX_BATCH_LENGTH,
    weigh: ({ job }) => lengthOf(job),
    maxRunning: BATCHES_UNDER_WAY,
    laneOf: ({ job }) => job.accountId,
  })
  const recipes = createKnownRecipes()
  return async (job, claim) => {
    await deps.partitions.ensure(job.expiresAt.getTime())
    const recipe = recipes.toFields(job)
    const answer = await submit({ job, claim, recipe })
    if (answer.outcome === 'failed') throw answer.error
    if (answer.outcome === 'queued' && recipe !== null) recipes.learn(job, recipe)
    return answer
  }
}

function lengthOf({ workflow, sealedExtraData, notes, submission }: NewJob): number {
  const whole = (submission?.wholeWorkflow?.length ?? 0) + (submission?.extraData.length ?? 0)
  return workflow.length + (sealedExtraData?.byteLength ?? 0) + (notes?.length ?? 0) + whole
}

async function submitSafely(deps: SubmitDeps, submits: readonly Submit[]): Promise<readonly SubmitAnswer[]> {
  try {
    return await submitWithPartitions(deps, submits)
  } catch (error) {
    if (isOutage(error)) throw error
    const parts = splitUp(submits)
    if (parts.length === 1) return [{ outcome: 'failed', error: error as Error }]
    const answers = new Map<Submit, SubmitAnswer>()
    for (const part of parts) {
      const partAnswers = await submitSafely(deps, part)
      for (const [index, submit] of part.entries()) answers.set(submit, partAnswers[index] as SubmitAnswer)
    }
    return submits.map((submit) => answers.get(submit) as SubmitAnswer)
  }
}

function splitUp(submits: readonly Submit[]): readonly (readonly Submit[])[] {
  const byAccount = Map.groupBy(submits, ({ job }) => job.accountId)
  return byAccount.size > 1 ? [...byAccount.values()] : submits.map((submit) => [submit])
}

function submitWithPartitions({ durable, partitions }: SubmitDeps, submits: readonly Submit[]) {
  const expiries = submits.map(({ job }) => job.expiresAt.getTime())
  return withPartitions(partitions, expiries, () => submitTogether(durable, submits))
}

/** The server is away, or its disk is full: smaller batches would fail as well. */
function isOutage(error: unknown): boolean {
  return error instanceof ServiceError && !isTimeout(error)
}
