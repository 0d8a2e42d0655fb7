/** Batches on Postgres. */
import { isUuid } from '../../../../../lib/ids.ts'
import type { BatchStore } from '../../../../domain/jobs/batches/batch-store.ts'
import { toStoredBatch } from '../../rows/jobs/batch-row.ts'
import { createBatchRecipes } from '../../rows/jobs/known-recipes.ts'
import { withPartitions } from '../database/partitions.ts'
import { findBatch, sweepBatches } from '../operations/batches/read-batch.ts'
import { submitBatch } from '../operations/batches/submit-batch.ts'
import type { StoreParts } from './store-parts.ts'

const SWEPT_AT_ONCE = 1000

export function createBatchStore({ durable, read, chore, partitions }: StoreParts): BatchStore {
  const known = createBatchRecipes()
  return {
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
    async find(accountId, batchId, now) {
      if (!isUuid(batchId)) return null
      const found = await findBatch(read, { accountId, batchId, now: now.getTime() })
      return found === null ? null : toStoredBatch(...found)
    },
    async sweep(now) {
      let total = 0
      for (;;) {
        const swept = await sweepBatches(chore, { now: now.getTime(), limit: SWEPT_AT_ONCE })
        total += swept
        if (swept < SWEPT_AT_ONCE) return total
      }
    },
  }
}
