/**
 * How many connections each account holds open, event streams and sockets counted together: one bound for everything that
 * costs us as long as it stays open. Which processes it holds over is the business of the counts.
 */
import { forAccount, type PerAccount } from '../../../domain/accounts/limits/tiers.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { createOwnCounts, type SharedCounts } from '../../../domain/service-nodes/shared-counts.ts'

export interface AccountConnections {
  /** Throws, or rejects with, too_many_streams. Whoever took a connection gives it back, once. */
  take(accountId: string): undefined | Promise<void>
  giveBack(accountId: string): void
  /** In this process. */
  count(accountId: string): number
}

const RETRY_AFTER_SECONDS = 5
// Beside other limits that are counted there.
const toKey = (accountId: string) => `connections ${accountId}`

export function createAccountConnections(
  limit: PerAccount,
  counts: Pick<SharedCounts, 'take' | 'giveBack' | 'count'> = createOwnCounts(),
): AccountConnections {
  async function whenAsked(taking: Promise<boolean>): Promise<void> {
    if (!(await taking)) throw tooManyStreams()
  }

  return {
    count: (accountId) => counts.count(toKey(accountId)),
    take(accountId) {
      const taken = counts.take(toKey(accountId), forAccount(limit, accountId))
      if (typeof taken !== 'boolean') return whenAsked(taken)
      if (!taken) throw tooManyStreams()
      return undefined
    },
    giveBack: (accountId) => counts.giveBack(toKey(accountId)),
  }
}

export function tooManyStreams(): ServiceError {
  return new ServiceError(
    'too_many_streams',
    'too many event streams and sockets of this account are open; poll, or try again later',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  )
}
