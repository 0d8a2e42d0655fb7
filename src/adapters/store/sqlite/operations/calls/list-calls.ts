import type { DatabaseSync } from 'node:sqlite'
import type { CallListQuery, ListedCall } from '../../../../../domain/models/calls/call-list.ts'
import { type CallListRow, callListSql, toListedCall } from '../../../rows/call-list-rows.ts'
import { prepareRows } from '../statement.ts'

type ListInput = CallListQuery & { readonly accountId: string }

export function prepareListCalls(database: DatabaseSync): (input: ListInput) => ListedCall[] {
  const words = { account: '?1', before: '?2', model: '?3', status: '?4', limit: '?5' }
  const select = prepareRows<CallListRow>(database, callListSql(words))
  return ({ accountId, before, modelId, status, limit }) =>
    select.all(accountId, before ?? Number.MAX_SAFE_INTEGER, modelId, status, limit).map(toListedCall)
}
