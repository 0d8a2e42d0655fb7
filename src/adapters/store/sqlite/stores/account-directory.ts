import type { AccountDirectory } from '../../../../domain/accounts/account-directory.ts'
import type { StoreChannels } from './store-channels.ts'

export function createAccountDirectory({ write, read }: StoreChannels): AccountDirectory {
  return {
    create: (account, limits) => write.call('createAccount', { account, limits }),
    replace: (account, limits) => write.call('replaceAccount', { account, limits }),
    enforce: async (limits) => (limits.length === 0 ? undefined : write.call('enforceLimits', limits)),
    find: (accountId) => read.call('findAccount', accountId),
    changedAfter: (version, limit) => read.call('changedAccounts', { version, limit }),
  }
}
