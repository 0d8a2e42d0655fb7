/** Batches on SQLite. */
import type { BatchStore } from '../../../../domain/jobs/batches/batch-store.ts'
import { toStoredBatch } from '../../rows/jobs/batch-row.ts'
import { createBatchRecipes } from '../../rows/jobs/known-recipes.ts'
import { toSubmitBatchInput } from '../operations/batches/submit-batch.ts'
import { inSlices, type StoreChannels, UNLIMITED } from './store-channels.ts'

export function createBatchStore({ write, read }: StoreChannels): BatchStore {
  const known = createBatchRecipes()
  return {
    async submit(batch, claim) {
      const recipes = known.toFields(batch)
      const weight = batch.jobs.reduce(
        (sum, { job }) => sum + job.workflow.length + (job.sealedExtraData?.byteLength ?? 0) + (job.notes?.length ?? 0),
        0,
      )
      const outcome = await write.call('submitBatch', toSubmitBatchInput(batch, claim, recipes), weight)
      if (outcome.outcome === 'queued') known.learn(batch, recipes, outcome.accepted)
      return outcome
    },
    async find(accountId, batchId, now) {
      const found = await read.call('findBatch', { accountId, batchId, now: now.getTime() })
      return found === null ? null : toStoredBatch(...found)
    },
    sweep: (now) => inSlices(UNLIMITED, (limit) => write.call('sweepBatches', { now: now.getTime(), limit })),
  }
}
