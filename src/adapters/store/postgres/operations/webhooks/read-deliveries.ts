/** What was sent and what came of it, looked at and sent again. */
import type { Attempt, Delivery } from '../../../../../domain/webhooks/webhook.ts'
import type { DeliveryQuery, ReplayRange } from '../../../../../domain/webhooks/webhook-store.ts'
import {
  ATTEMPT_COLUMNS,
  type AttemptRow,
  DELIVERY_COLUMNS,
  type DeliveryRow,
  toAttempt,
  toDelivery,
} from '../../../rows/webhook-rows.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { WAITING } from './claim-deliveries.ts'
import { dropDeliveries } from './endpoint-rows.ts'

const toList = (name: string, filter: string) =>
  statement<DeliveryRow>(
    `webhooks.${name}`,
    `SELECT ${DELIVERY_COLUMNS} FROM webhook_delivery WHERE account_id = $1 ${filter}
       AND ($2::text IS NULL OR state = $2) AND ($3::text IS NULL OR endpoint_id = $3)
       AND seq < coalesce((SELECT seq FROM webhook_delivery WHERE id = $4 AND account_id = $1), 9223372036854775807)
     ORDER BY seq DESC LIMIT $5`,
  )
const LIST = toList('deliveries', '')
const LIST_OF_SUBJECT = toList('deliveries-of-subject', 'AND subject = $6')

export async function listDeliveries(db: Queryable, accountId: string, query: DeliveryQuery): Promise<Delivery[]> {
  const { endpointId = null, subject, state = null, before = null, limit } = query
  const values = [accountId, state, endpointId, before, limit]
  const rows = subject === undefined ? db.all(LIST, values) : db.all(LIST_OF_SUBJECT, [...values, subject])
  return (await rows).map(toDelivery)
}

const FIND = statement<DeliveryRow>(
  'webhooks.delivery',
  `SELECT ${DELIVERY_COLUMNS} FROM webhook_delivery WHERE account_id = $1 AND id = $2`,
)
const ATTEMPTS = statement<AttemptRow>(
  'webhooks.attempts',
  `SELECT ${ATTEMPT_COLUMNS} FROM webhook_attempt WHERE delivery_id = $1 ORDER BY number`,
)

export async function findDelivery(
  db: Queryable,
  accountId: string,
  id: string,
): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | null> {
  const row = await db.get(FIND, [accountId, id])
  if (row === undefined) return null
  return { delivery: toDelivery(row), attempts: (await db.all(ATTEMPTS, [id])).map(toAttempt) }
}

// A try that is under way goes on; what comes of it counts.
const AGAIN = `state = 'pending', first_at = NULL, ended_at = NULL,
  next_at = CASE WHEN lease_id IS NULL THEN $1 ELSE next_at END`

const REPLAY = statement<DeliveryRow>(
  'webhooks.replay',
  `UPDATE webhook_delivery SET ${AGAIN} WHERE account_id = $2 AND id = $3 RETURNING ${DELIVERY_COLUMNS}`,
)

export async function replayDelivery(
  tx: Queryable,
  { accountId, id, now }: { readonly accountId: string; readonly id: string; readonly now: Date },
): Promise<Delivery | null> {
  const row = await tx.get(REPLAY, [now.getTime(), accountId, id])
  return row === undefined ? null : toDelivery(row)
}

const REPLAY_RANGE = statement(
  'webhooks.replay-range',
  `UPDATE webhook_delivery SET ${AGAIN}
   WHERE account_id = $2 AND endpoint_id = $3 AND at >= $4 AND at < $5
     AND (state = 'failed' OR (state = 'delivered' AND NOT $6))`,
)

export function replayRange(
  tx: Queryable,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  { from, to, onlyFailed }: ReplayRange,
  now: Date,
): Promise<number> {
  return tx.run(REPLAY_RANGE, [now.getTime(), accountId, id, from.getTime(), to.getTime(), onlyFailed])
}

const BACKLOG = statement<[pending: number]>(
  'webhooks.backlog',
  `SELECT count(*) FROM (
     SELECT 1 FROM webhook_delivery WHERE state = 'pending' ORDER BY endpoint_id, next_at LIMIT $1) AS waiting`,
)

export async function countBacklog(db: Queryable, limit: number): Promise<number> {
  return (await db.get(BACKLOG, [limit]))?.[0] ?? 0
}

const FIND_OLD = statement<[id: string]>(
  'webhooks.find-old',
  'SELECT id FROM webhook_delivery WHERE ended_at < $1 ORDER BY ended_at LIMIT $2',
)
const DROP_ATTEMPTS = statement(
  'webhooks.drop-attempts',
  'DELETE FROM webhook_attempt WHERE delivery_id = ANY($1::text[])',
)
const DROP_OLD = statement('webhooks.drop-old', 'DELETE FROM webhook_delivery WHERE id = ANY($1::text[])')
// A job that ended while an endpoint was being removed has told it.
const FIND_LOST = statement<[endpointId: string]>(
  'webhooks.find-lost',
  `${WAITING}
   SELECT endpoint_id FROM waiting WHERE endpoint_id IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM webhook_endpoint WHERE id = waiting.endpoint_id)`,
)
const SWEEP_ENDPOINTS = statement(
  'webhooks.sweep-endpoints',
  `DELETE FROM webhook_endpoint WHERE id IN (
     SELECT id FROM webhook_endpoint AS unused WHERE kind = 'job' AND used_at < $1
       AND NOT EXISTS (SELECT 1 FROM webhook_delivery WHERE endpoint_id = unused.id)
       AND NOT EXISTS (SELECT 1 FROM job WHERE hook = unused.id AND hook > '')
       AND NOT EXISTS (SELECT 1 FROM router_call WHERE hook = unused.id AND hook > '' AND state IN ('waiting', 'running'))
     LIMIT $2)`,
)

export async function sweepDeliveries(tx: Queryable, before: Date, limit: number): Promise<number> {
  const old = (await tx.all(FIND_OLD, [before.getTime(), limit])).map(([id]) => id)
  if (old.length > 0) {
    await tx.run(DROP_ATTEMPTS, [old])
    await tx.run(DROP_OLD, [old])
  }
  for (const [endpointId] of await tx.all(FIND_LOST)) await dropDeliveries(tx, endpointId)
  return old.length + (await tx.run(SWEEP_ENDPOINTS, [before.getTime(), limit]))
}
