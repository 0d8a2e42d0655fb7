/** Counts what is asked of a database: for the metrics, and to tell when it is away. */
import type { BatchStats } from '../../../../domain/store.ts'
import type { OutageLog } from './outage-log.ts'

/** Counts transactions; a statement asked directly is one. Each is one operation, unless several were gathered for it. */
export interface Tally {
  count<Result>(run: () => Promise<Result>): Promise<Result>
  noteBatch(size: number): void
  stats(): BatchStats
}

export function createTally(outages: OutageLog): Tally {
  let batches = 0
  let operations = 0
  let failedOperations = 0
  let pending = 0
  let largestBatch = 0
  return {
    async count(run) {
      pending += 1
      operations += 1
      try {
        const result = await run()
        outages.answered()
        return result
      } catch (error) {
        failedOperations += 1
        outages.failed(error)
        throw error
      } finally {
        pending -= 1
        batches += 1
        largestBatch = Math.max(largestBatch, 1)
      }
    },
    noteBatch(size) {
      operations += size - 1
      largestBatch = Math.max(largestBatch, size)
    },
    stats: () => ({ batches, operations, largestBatch, failedOperations, pending }),
  }
}
