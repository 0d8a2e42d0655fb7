import type { AccountRecord } from '../../domain/accounts/account.ts'
import type { Accounts } from '../../domain/accounts/accounts.ts'
import { ServiceError } from '../../domain/errors.ts'

/** Throws not_found. */
export function mustFindAccount(accounts: Pick<Accounts, 'find'>, id: string): AccountRecord {
  const account = accounts.find(id)
  if (account === null) throw new ServiceError('not_found', 'there is no account with this id')
  return account
}
