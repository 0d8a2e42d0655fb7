/** Messages whose time has come, given out under a lease; and what came of them. The order of locks: an endpoint, then its messages. */
import type {
  AttemptEnd,
  ClaimDeliveries,
  ClaimedDelivery,
  NewMessage,
} from '../../../../../domain/webhooks/webhook-store.ts'
import {
  DELIVERY_COLUMNS,
  type DeliveryRow,
  ENDPOINT_COLUMNS,
  type EndpointRow,
  toClaimed,
  toEndpoint,
} from '../../../rows/webhook-rows.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { toText } from '../../database/texts.ts'

const HAS_PENDING = statement<[seq: number]>(
  'webhooks.has-pending',
  `SELECT seq FROM webhook_delivery WHERE state = 'pending' ORDER BY endpoint_id, next_at LIMIT 1`,
)

export async function hasPending(db: Queryable): Promise<boolean> {
  return (await db.get(HAS_PENDING)) !== undefined
}

/** Steps through the index from endpoint to endpoint, however much waits for each. */
export const WAITING = `WITH RECURSIVE waiting AS (
     (SELECT endpoint_id FROM webhook_delivery WHERE state = 'pending' ORDER BY endpoint_id LIMIT 1)
     UNION ALL
     SELECT (SELECT endpoint_id FROM webhook_delivery WHERE state = 'pending' AND endpoint_id > waiting.endpoint_id
             ORDER BY endpoint_id LIMIT 1)
     FROM waiting WHERE waiting.endpoint_id IS NOT NULL)`

// One that somebody else takes from right now is left to them.
const LOCK_DUE = statement<EndpointRow>(
  'webhooks.lock-due',
  `${WAITING}
   SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint AS endpoint
   WHERE id IN (SELECT endpoint_id FROM waiting) AND state = 'enabled' AND EXISTS (
     SELECT 1 FROM webhook_delivery AS due
     WHERE due.state = 'pending' AND due.endpoint_id = endpoint.id AND due.next_at <= $1)
   ORDER BY random() LIMIT $2 FOR NO KEY UPDATE OF endpoint SKIP LOCKED`,
)
const TAKE = statement<DeliveryRow>(
  'webhooks.take',
  `WITH room AS MATERIALIZED (
     SELECT asked.id, greatest(0, asked.most - (
       SELECT count(*) FROM webhook_delivery AS leased
       WHERE leased.endpoint_id = asked.id AND leased.lease_id IS NOT NULL AND leased.next_at > $3)) AS places
     FROM unnest($1::text[], $2::bigint[]) AS asked(id, most)),
   due AS MATERIALIZED (
     SELECT head.seq FROM room CROSS JOIN LATERAL (
       SELECT seq FROM webhook_delivery AS due
       WHERE due.state = 'pending' AND due.endpoint_id = room.id AND due.next_at <= $3 AND NOT EXISTS (
         SELECT 1 FROM webhook_delivery AS earlier WHERE earlier.state = 'pending'
           AND earlier.endpoint_id = due.endpoint_id AND earlier.subject = due.subject AND earlier.seq < due.seq)
       ORDER BY due.next_at LIMIT room.places) AS head LIMIT $6)
   UPDATE webhook_delivery SET lease_id = $4, next_at = $5 WHERE seq IN (SELECT seq FROM due)
   RETURNING ${DELIVERY_COLUMNS}`,
)

export async function claimDeliveries(tx: Queryable, request: ClaimDeliveries): Promise<ClaimedDelivery[]> {
  const { leaseId, now, until, limit, perEndpoint } = request
  const endpoints = (await tx.all(LOCK_DUE, [now.getTime(), limit])).map(toEndpoint)
  if (endpoints.length === 0) return []
  const rows = await tx.all(TAKE, [
    endpoints.map(({ id }) => id),
    endpoints.map(({ failingSince }) => (failingSince === null ? perEndpoint : 1)),
    ...[now.getTime(), leaseId, until.getTime(), limit],
  ])
  const byId = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]))
  return rows.flatMap((row) => {
    const endpoint = byId.get(row[5])
    return endpoint === undefined ? [] : [toClaimed(row, endpoint)]
  })
}

type HeldRow = readonly [
  seq: number,
  endpointId: string,
  accountId: string,
  subject: string,
  attempts: number,
  state: string,
  leaseId: string | null,
]

const LOCK_ENDPOINT = statement(
  'webhooks.lock-of-delivery',
  `SELECT 1 FROM webhook_endpoint WHERE id = (SELECT endpoint_id FROM webhook_delivery WHERE id = $1) FOR NO KEY UPDATE`,
)
const LOCK_HELD = statement<HeldRow>(
  'webhooks.lock-held',
  `SELECT seq, endpoint_id, account_id, subject, attempts, state, lease_id FROM webhook_delivery
   WHERE id = $1 FOR UPDATE`,
)
const ADD_ATTEMPT = statement(
  'webhooks.add-attempt',
  `INSERT INTO webhook_attempt (delivery_id, number, at, took_ms, outcome, status, response)
   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (delivery_id, number) DO NOTHING`,
)
const END = statement(
  'webhooks.end',
  `UPDATE webhook_delivery SET state = $2, attempts = attempts + 1, first_at = coalesce(first_at, $3), lease_id = NULL,
     ended_at = $3 WHERE seq = $1`,
)
const POSTPONE = statement(
  'webhooks.postpone',
  `UPDATE webhook_delivery SET next_at = $2, attempts = attempts + 1, first_at = coalesce(first_at, $3), lease_id = NULL
   WHERE seq = $1`,
)
// What must wait for it anyway is not looked at before.
const POSTPONE_BEHIND = statement(
  'webhooks.postpone-behind',
  `UPDATE webhook_delivery SET next_at = $4
   WHERE state = 'pending' AND endpoint_id = $1 AND subject = $2 AND seq > $3 AND next_at < $4`,
)
const ARRIVED = statement(
  'webhooks.arrived',
  'UPDATE webhook_endpoint SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL',
)
const FAILED = statement(
  'webhooks.failed',
  'UPDATE webhook_endpoint SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL',
)
const DISABLE = statement(
  'webhooks.disable',
  `UPDATE webhook_endpoint SET state = 'disabled', reason = $2, disabled_at = $3 WHERE id = $1 AND state = 'enabled'`,
)
const FAIL_ALL = statement(
  'webhooks.fail-all',
  `UPDATE webhook_delivery SET state = 'failed', ended_at = $2, lease_id = NULL WHERE endpoint_id = $1 AND state = 'pending'`,
)
const TELL_DISABLED = statement(
  'webhooks.tell-disabled',
  `INSERT INTO webhook_delivery (endpoint_id, account_id, type, subject, at, facts, next_at)
   SELECT other.id, other.account_id, 'webhook.disabled', $1, $3,
     json_build_object('webhook_id', $1::text, 'reason', $2::text)::text, $3
   FROM webhook_endpoint AS other
   WHERE other.account_id = $4 AND kind = 'account' AND state = 'enabled' AND strpos(events, ' webhook.disabled ') > 0`,
)

/** Of one message. Returns the endpoint when it was disabled by it. */
export async function finishDelivery(tx: Queryable, end: AttemptEnd): Promise<string[]> {
  const { deliveryId, leaseId, attempt, result, disable } = end
  await tx.run(LOCK_ENDPOINT, [deliveryId])
  const held = await tx.get(LOCK_HELD, [deliveryId])
  if (held === undefined) return []
  const [seq, endpointId, accountId, subject, attempts, state, heldBy] = held
  if (state !== 'pending' || (heldBy !== leaseId && result.fate !== 'delivered')) return []
  const at = attempt.at.getTime()
  const { tookMs, outcome, status, response } = attempt
  await tx.run(ADD_ATTEMPT, [deliveryId, attempts + 1, at, tookMs, outcome, status, toText(response)])
  if (result.fate === 'retry') {
    const nextAt = result.nextAt.getTime()
    await tx.run(POSTPONE, [seq, nextAt, at])
    await tx.run(POSTPONE_BEHIND, [endpointId, subject, seq, nextAt])
  } else await tx.run(END, [seq, result.fate, at])
  if (result.fate === 'delivered') await tx.run(ARRIVED, [endpointId])
  else await tx.run(FAILED, [endpointId, at])
  if (disable === null || (await tx.run(DISABLE, [endpointId, disable, at])) === 0) return []
  await tx.run(FAIL_ALL, [endpointId, at])
  await tx.run(TELL_DISABLED, [endpointId, disable, at, accountId])
  return [endpointId]
}

const ENQUEUE = statement(
  'webhooks.enqueue',
  `INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $6) ON CONFLICT (id) DO NOTHING`,
)

export async function enqueueMessage(tx: Queryable, message: NewMessage): Promise<void> {
  const { id, endpointId, accountId, type, subject, at, facts } = message
  await tx.run(ENQUEUE, [id, endpointId, accountId, type, subject, at.getTime(), facts])
}
