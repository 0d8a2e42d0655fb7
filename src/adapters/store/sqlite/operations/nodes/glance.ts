/** What a process would look at every other second where others write to the store as well. */
import type { DatabaseSync } from 'node:sqlite'
import type { StoreGlance } from '../../../../../domain/store.ts'
import { prepareRows } from '../statement.ts'

type GlanceRow = [
  accounts: number,
  keys: number,
  deployments: number,
  engines: string,
  hasWaitingCalls: number,
  hasLapsedCalls: number,
  hasPendingMessages: number,
]

export function prepareGlance(database: DatabaseSync): (now: number) => StoreGlance {
  const newest = (table: string) => `(SELECT coalesce(max(version), 0) FROM ${table})`
  const select = prepareRows<GlanceRow>(
    database,
    `SELECT ${newest('account_profile')}, ${newest('api_key')}, ${newest('deployment')},
       (SELECT json_group_array(json_array(id, node_id, is_shared, state, concurrency, catalog_hash, will_number, about))
        FROM engine),
       EXISTS (SELECT 1 FROM router_call WHERE state = 'waiting' AND account_id >= ''),
       EXISTS (SELECT 1 FROM router_call WHERE state = 'running' AND (owner IS NULL OR lease_until < ?)),
       EXISTS (SELECT 1 FROM webhook_delivery WHERE state = 'pending' AND endpoint_id >= '')`,
  )
  return (now) => {
    const row = select.get(now)
    if (row === undefined) throw new Error('The database did not answer a glance.')
    const [accounts, keys, deployments, engines, hasWaitingCalls, hasLapsedCalls, hasPendingMessages] = row
    return {
      ...{ versions: { accounts, keys, deployments }, engines },
      hasWaitingCalls: hasWaitingCalls === 1,
      hasLapsedCalls: hasLapsedCalls === 1,
      hasPendingMessages: hasPendingMessages === 1,
    }
  }
}
