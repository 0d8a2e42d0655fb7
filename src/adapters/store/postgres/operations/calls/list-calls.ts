import type { CallListQuery, ListedCall } from '../../../../../domain/models/calls/call-list.ts'
import { type CallListRow, callListSql, toListedCall } from '../../../rows/call-list-rows.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const LIST = statement<CallListRow>(
  'calls.list',
  callListSql({ account: '$1', before: '$2', model: '$3::text', status: '$4::text', limit: '$5' }),
)

export async function listCalls(db: Queryable, accountId: string, query: CallListQuery): Promise<ListedCall[]> {
  const { before, modelId, status, limit } = query
  const rows = await db.all(LIST, [accountId, before ?? Number.MAX_SAFE_INTEGER, modelId, status, limit])
  return rows.map(toListedCall)
}
