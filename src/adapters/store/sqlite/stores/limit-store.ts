import type { LimitStore } from '../../../../domain/credits/limit-store.ts'
import type { StoreChannels } from './store-channels.ts'

export function createLimitStore({ write }: StoreChannels): LimitStore {
  return {
    async takeRequests(accountId, { perMinute, burst }, count, now) {
      const input = { accountId, perMinute, burst, count, now: now.getTime() }
      const [granted, nextAtMs] = await write.call('takeRequests', input)
      return { granted, nextAt: new Date(nextAtMs) }
    },
  }
}
