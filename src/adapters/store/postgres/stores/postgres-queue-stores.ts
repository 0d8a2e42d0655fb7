/** The stores of accounts' counters and of idempotency keys. */
import type { AccountStore } from '../../../../domain/accounts/account-store.ts'
import type { IdempotencyStore } from '../../../../domain/idempotency/idempotency-key.ts'
import { findUse, putAccounts, repairCounters } from '../operations/accounts/account-counters.ts'
import { findHolders, sweepKeys } from '../operations/accounts/idempotency-keys.ts'
import type { StoreParts } from './store-parts.ts'

export function createAccountStore({ durable, read, chore }: StoreParts): AccountStore {
  return {
    put: (account) => durable.transaction((tx) => putAccounts(tx, [account]), { isRepeatable: true }),
    findUse: (accountId) => findUse(read, accountId),
    repairCounters: () => repairCounters(chore),
  }
}

const SWEPT_AT_ONCE = 1000

export function createIdempotencyStore({ read, chore }: StoreParts): IdempotencyStore {
  return {
    async findKey(accountId, key, now) {
      const [holder = null] = await findHolders(read, [{ accountId, key, now: now.getTime() }])
      return holder
    },
    async sweepKeys(now) {
      let total = 0
      for (;;) {
        const swept = await sweepKeys(chore, { now: now.getTime(), limit: SWEPT_AT_ONCE })
        total += swept
        if (swept < SWEPT_AT_ONCE) return total
      }
    },
  }
}
