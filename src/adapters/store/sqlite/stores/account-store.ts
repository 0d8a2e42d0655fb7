import type { AccountStore } from '../../../../domain/accounts/account-store.ts'
import type { StoreChannels } from './store-channels.ts'

export function createAccountStore({ write, read }: StoreChannels): AccountStore {
  return {
    put: ({ id, maxRunning, maxQueued }) => write.call('putAccount', { id, maxRunning, maxQueued }),
    findUse: (accountId) => read.call('findUse', accountId),
    repairCounters: () => write.call('repairCounters', null),
  }
}
