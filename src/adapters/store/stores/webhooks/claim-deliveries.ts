/** The claim of messages to webhooks: which endpoints are due, and what is taken for each. */
import type { ClaimedDelivery, WebhookStore } from '../../../../domain/webhooks/webhook-store.ts'
import { all, type Steps } from '../../statements/operation.ts'
import { query } from '../../statements/statement.ts'
import { omit } from '../../tables/table.ts'
import { webhookDelivery, webhookEndpoint } from '../../tables/webhooks.ts'

const endpointRow = omit(webhookEndpoint, 'usedAt')

/** Steps through the index from endpoint to endpoint, however much waits for each. */
export const WAITING_ENDPOINTS = `
  WITH RECURSIVE waiting (endpoint_id) AS (
    SELECT min(endpoint_id) FROM webhook_delivery WHERE state = 'pending' AND endpoint_id > ''
    UNION ALL
    SELECT (SELECT min(endpoint_id) FROM webhook_delivery WHERE state = 'pending' AND endpoint_id > waiting.endpoint_id)
    FROM waiting WHERE waiting.endpoint_id IS NOT NULL)`

// In no order, so that whoever comes first in the index does not always come first. One that somebody else takes from right now is left
// to them.
const LOCK_DUE = query(
  'webhooks.lockDue',
  endpointRow,
  (words) => `${WAITING_ENDPOINTS}
    SELECT ${endpointRow.columns} FROM webhook_endpoint AS endpoint
    WHERE id IN (SELECT endpoint_id FROM waiting) AND state = 'enabled'
      AND (kind <> 'job' OR description = '' OR :knowsForms = 1) AND EXISTS (
      SELECT 1 FROM webhook_delivery AS due
      WHERE due.state = 'pending' AND due.endpoint_id = endpoint.id AND due.next_at <= :now)
    ORDER BY random() LIMIT :limit ${words.either('', 'FOR NO KEY UPDATE OF endpoint SKIP LOCKED')}`,
)
// The oldest of each subject; `most`: as many as may be under way to the endpoint at a time.
const TAKE = query(
  'webhooks.take',
  webhookDelivery,
  (words) => `
    UPDATE webhook_delivery SET lease_id = :leaseId, next_at = :until WHERE seq IN (
      SELECT seq FROM webhook_delivery AS due
      WHERE state = 'pending' AND endpoint_id = :endpointId AND next_at <= :now AND NOT EXISTS (
        SELECT 1 FROM webhook_delivery AS earlier WHERE earlier.state = 'pending'
          AND earlier.endpoint_id = due.endpoint_id AND earlier.subject = due.subject AND earlier.seq < due.seq)
      ORDER BY next_at LIMIT ${words.greatest(
        '0',
        words.least(
          'CAST(:room AS bigint)',
          `CAST(:most AS bigint) - (SELECT count(*) FROM webhook_delivery AS leased
             WHERE leased.endpoint_id = :endpointId AND leased.lease_id IS NOT NULL AND leased.next_at > :now)`,
        ),
      )})
    RETURNING ${webhookDelivery.columns}`,
)

type ClaimWish = Parameters<WebhookStore['claim']>[0]

export function* claimDeliveries({
  leaseId,
  now,
  until,
  limit,
  perEndpoint,
  knowsForms,
}: ClaimWish): Steps<ClaimedDelivery[]> {
  const claimed: ClaimedDelivery[] = []
  for (const endpoint of yield* all(LOCK_DUE, { now, limit, knowsForms: knowsForms ? 1 : 0 })) {
    const room = limit - claimed.length
    if (room <= 0) break
    const most = endpoint.failingSince === null ? perEndpoint : 1
    for (const row of yield* all(TAKE, { endpointId: endpoint.id, leaseId, now, until, room, most })) {
      const { id, type, subject, at, facts, attempts, firstAt } = row
      claimed.push({ id, type, subject, at, facts, attempts, firstAt, leaseId, endpoint })
    }
  }
  return claimed
}
