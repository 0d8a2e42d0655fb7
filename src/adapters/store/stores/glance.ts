/** What every process asks every other second, as one statement that reads little: it costs the same however many ask for it. */
import type { Store } from '../../../domain/store.ts'
import { defineStore, get, read } from '../statements/operation.ts'
import { query } from '../statements/statement.ts'
import { flag, integer, shape, text } from '../tables/table.ts'

const newest = (table: string) => `(SELECT coalesce(max(version), 0) FROM ${table})`
// All but `held_until` and `seen_at`, which every beat moves. A sum needs no order.
const ENGINES = ['id', 'node_id', 'is_shared', 'state', 'concurrency', 'catalog_hash', 'will_number', 'about'].join(
  ', ',
)

const GLANCE = query(
  'store.glance',
  shape({
    ...{ accounts: integer(), keys: integer(), deployments: integer(), engines: text() },
    ...{ hasWaitingCalls: flag(), hasLapsedCalls: flag(), hasPendingMessages: flag() },
  }),
  ({ either }) => `
    SELECT ${newest('account_profile')} AS accounts, ${newest('api_key')} AS keys, ${newest('deployment')} AS deployments,
      ${either(
        `(SELECT json_group_array(json_array(${ENGINES})) FROM engine)`,
        `(SELECT coalesce(sum(hashtextextended(concat_ws(' ', ${ENGINES}), 0)), 0)::text FROM engine)`,
      )} AS engines,
      ${either(
        `EXISTS (SELECT 1 FROM router_call WHERE state = 'waiting' AND account_id >= '')`,
        `(SELECT seq FROM router_call WHERE state = 'waiting' ORDER BY account_id, seq LIMIT 1) IS NOT NULL`,
      )} AS has_waiting_calls,
      EXISTS (SELECT 1 FROM router_call WHERE state = 'running'
        AND (owner IS NULL OR lease_until < ${either(':now', '(extract(epoch FROM now()) * 1000)::bigint')})) AS has_lapsed_calls,
      ${either(
        `EXISTS (SELECT 1 FROM webhook_delivery WHERE state = 'pending' AND endpoint_id >= '')`,
        `(SELECT seq FROM webhook_delivery WHERE state = 'pending' ORDER BY endpoint_id, next_at LIMIT 1) IS NOT NULL`,
      )} AS has_pending_messages`,
)

interface Glances {
  /** `now`: where the store has no clock of its own. */
  glance(now: Date): ReturnType<Store['glance']>
}

export const glances = defineStore<Glances>('store', {
  glance: read(function* (now) {
    const found = yield* get(GLANCE, { now })
    if (found === undefined) throw new Error('The database did not answer a glance.')
    const { accounts, keys, deployments, ...rest } = found
    return { versions: { accounts, keys, deployments }, ...rest }
  }),
})
