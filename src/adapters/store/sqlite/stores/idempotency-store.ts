import type { IdempotencyStore } from '../../../../domain/idempotency/key-record.ts'
import { inSlices, type StoreChannels } from './store-channels.ts'

export function createIdempotencyStore({ write, read }: StoreChannels): IdempotencyStore {
  return {
    findKey: (accountId, key, now) => read.call('findHolder', { accountId, key, now: now.getTime() }),
    async sweepKeys(now) {
      let swept = 0
      await inSlices(Number.POSITIVE_INFINITY, async (limit) => {
        const count = await write.call('sweepKeys', { now: now.getTime(), limit })
        swept += count
        return count
      })
      return swept
    },
  }
}
