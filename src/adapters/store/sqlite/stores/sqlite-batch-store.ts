/** Batches on SQLite. */
import type { BatchStore } from '../../../../domain/jobs/batches/batch-store.ts'
import { createBatchRecipes } from '../../rows/jobs/known-recipes.ts'
import { createBatchReads } from '../../stores/batch-reads.ts'
import { toSubmitBatchInput } from '../operations/batches/submit-batch.ts'
import { openShared } from '../shared-stores.ts'
import type { StoreChannels } from './store-channels.ts'

export function createBatchStore(channels: StoreChannels): BatchStore {
  const known = createBatchRecipes()
  return {
    ...createBatchReads((store) => openShared(store, channels)),
    async submit(batch, claim) {
      const recipes = known.toFields(batch)
      const weight = batch.jobs.reduce(
        (sum, { job }) => sum + job.workflow.length + (job.sealedExtraData?.byteLength ?? 0) + (job.notes?.length ?? 0),
        0,
      )
      const outcome = await channels.write.call('submitBatch', toSubmitBatchInput(batch, claim, recipes), weight)
      if (outcome.outcome === 'queued') known.learn(batch, recipes, outcome.accepted)
      return outcome
    },
  }
}
