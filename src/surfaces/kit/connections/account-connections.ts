/**
 * How many connections each account holds open, event streams and sockets counted together: one bound for everything that
 * costs us as long as it stays open.
 */
import { forAccount, type PerAccount } from '../../../domain/accounts/limits/tiers.ts'
import { ServiceError } from '../../../domain/errors.ts'

export interface AccountConnections {
  /** Throws too_many_streams. Whoever took a connection gives it back, once. */
  take(accountId: string): void
  giveBack(accountId: string): void
  count(accountId: string): number
}

const RETRY_AFTER_SECONDS = 5

export function createAccountConnections(limit: PerAccount): AccountConnections {
  const held = new Map<string, number>()
  const count = (accountId: string) => held.get(accountId) ?? 0
  return {
    count,
    take(accountId) {
      if (count(accountId) >= forAccount(limit, accountId)) throw tooManyStreams()
      held.set(accountId, count(accountId) + 1)
    },
    giveBack(accountId) {
      const left = count(accountId) - 1
      if (left > 0) held.set(accountId, left)
      else held.delete(accountId)
    },
  }
}

export function tooManyStreams(): ServiceError {
  return new ServiceError(
    'too_many_streams',
    'too many event streams and sockets of this account are open; poll, or try again later',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  )
}
