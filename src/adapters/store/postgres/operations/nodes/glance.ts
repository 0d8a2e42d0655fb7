/** What every process asks every other second, as one statement that reads little: it costs the same however many ask for it. */
import type { StoreGlance } from '../../../../../domain/store.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const newest = (table: string) => `(SELECT coalesce(max(version), 0) FROM ${table})`

// All but `held_until` and `seen_at`, which every beat moves. A sum needs no order.
const ENGINES = `(
  SELECT coalesce(sum(hashtextextended(
    concat_ws(' ', id, node_id, is_shared, state, concurrency, catalog_hash, will_number, about), 0)), 0)::text
  FROM engine)`

const NOW = '(extract(epoch FROM now()) * 1000)::bigint'

type GlanceRow = readonly [
  accounts: number,
  keys: number,
  deployments: number,
  engines: string,
  hasWaitingCalls: boolean,
  hasLapsedCalls: boolean,
  hasPendingMessages: boolean,
]

const GLANCE = statement<GlanceRow>(
  'store.glance',
  `SELECT ${newest('account_profile')}, ${newest('api_key')}, ${newest('deployment')}, ${ENGINES},
     (SELECT seq FROM router_call WHERE state = 'waiting' ORDER BY account_id, seq LIMIT 1) IS NOT NULL,
     EXISTS (SELECT 1 FROM router_call WHERE state = 'running' AND (owner IS NULL OR lease_until < ${NOW})),
     (SELECT seq FROM webhook_delivery WHERE state = 'pending' ORDER BY endpoint_id, next_at LIMIT 1) IS NOT NULL`,
)

export async function glance(db: Queryable): Promise<StoreGlance> {
  const row = await db.get(GLANCE)
  if (row === undefined) throw new Error('The server did not answer a glance.')
  const [accounts, keys, deployments, engines, hasWaitingCalls, hasLapsedCalls, hasPendingMessages] = row
  return { versions: { accounts, keys, deployments }, engines, hasWaitingCalls, hasLapsedCalls, hasPendingMessages }
}
