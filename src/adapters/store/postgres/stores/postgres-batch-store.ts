/** Batches on Postgres. */
import type { BatchStore } from '../../../../domain/jobs/batches/batch-store.ts'
import { createBatchRecipes } from '../../rows/jobs/known-recipes.ts'
import { createBatchReads } from '../../stores/batch-reads.ts'
import { withPartitions } from '../database/partitions.ts'
import { submitBatch } from '../operations/batches/submit-batch.ts'
import { openShared } from '../shared-stores.ts'
import type { StoreParts } from './store-parts.ts'

export function createBatchStore(parts: StoreParts): BatchStore {
  const { durable, partitions } = parts
  const known = createBatchRecipes()
  return {
    ...createBatchReads((store) => openShared(store, parts)),
    async submit(batch, claim) {
      const expiresAt = batch.jobs[0]!.job.expiresAt.getTime()
      await partitions.ensure(expiresAt)
      const recipes = known.toFields(batch)
      const outcome = await withPartitions(partitions, [expiresAt], () =>
        submitBatch(durable, { batch, claim, recipes }),
      )
      if (outcome.outcome === 'queued') known.learn(batch, recipes, outcome.accepted)
      return outcome
    },
  }
}
