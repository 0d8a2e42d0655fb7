/** The end of one try to deliver a message to a webhook: what becomes of the message, of those behind it, and of its endpoint. */
import type { AttemptEnd } from '../../../../domain/webhooks/webhook-store.ts'
import { get, run, type Steps, together } from '../../statements/operation.ts'
import { command, postgresOnly, query, selectFrom, upsertInto } from '../../statements/statement.ts'
import { encode, pick } from '../../tables/table.ts'
import { webhookAttempt, webhookDelivery } from '../../tables/webhooks.ts'

const held = pick(webhookDelivery, 'seq', 'endpointId', 'accountId', 'subject', 'attempts', 'state', 'leaseId')
const LOCK_ENDPOINT = command(
  'webhooks.lockOfDelivery',
  postgresOnly(`SELECT 1 FROM webhook_endpoint
    WHERE id = (SELECT endpoint_id FROM webhook_delivery WHERE id = :deliveryId) FOR NO KEY UPDATE`),
)
const LOCK_HELD = query('webhooks.lockHeld', held, (words) =>
  selectFrom(webhookDelivery, `WHERE id = :deliveryId ${words.lock('UPDATE')}`, held),
)
const ADD_ATTEMPT = command('webhooks.addAttempt', upsertInto(webhookAttempt))
const TRIED = 'attempts = attempts + 1, first_at = coalesce(first_at, :at), lease_id = NULL'
const END = command(
  'webhooks.end',
  `UPDATE webhook_delivery SET state = :fate, ${TRIED}, ended_at = :at WHERE seq = :seq`,
)
const POSTPONE = command(
  'webhooks.postpone',
  `UPDATE webhook_delivery SET next_at = :nextAt, ${TRIED} WHERE seq = :seq`,
)
// What must wait for it anyway is not looked at before.
const POSTPONE_BEHIND = command(
  'webhooks.postponeBehind',
  `UPDATE webhook_delivery SET next_at = :nextAt
   WHERE state = 'pending' AND endpoint_id = :endpointId AND subject = :subject AND seq > :seq AND next_at < :nextAt`,
)
const ARRIVED = command(
  'webhooks.arrived',
  'UPDATE webhook_endpoint SET failing_since = NULL WHERE id = :endpointId AND failing_since IS NOT NULL',
)
const FAILED = command(
  'webhooks.failed',
  'UPDATE webhook_endpoint SET failing_since = :at WHERE id = :endpointId AND failing_since IS NULL',
)
const DISABLE = command(
  'webhooks.disable',
  `UPDATE webhook_endpoint SET state = 'disabled', reason = :reason, disabled_at = :at WHERE id = :endpointId AND state = 'enabled'`,
)
const FAIL_ALL = command(
  'webhooks.failAll',
  `UPDATE webhook_delivery SET state = 'failed', ended_at = :at, lease_id = NULL WHERE endpoint_id = :endpointId AND state = 'pending'`,
)
/** Other endpoints of the account are told, where they asked for it. */
const TELL_DISABLED = command(
  'webhooks.tellDisabled',
  ({ either }) => `
    INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
    SELECT 'msg_' || ${either('lower(hex(randomblob(16)))', `replace(gen_random_uuid()::text, '-', '')`)}, other.id, other.account_id,
      'webhook.disabled', :endpointId, :at, :facts, :at
    FROM webhook_endpoint AS other
    WHERE other.account_id = :accountId AND kind = 'account' AND state = 'enabled' AND events LIKE '% webhook.disabled %'`,
)

/** Returns the endpoint when it was disabled by it. */
export function* finishOne({
  deliveryId,
  leaseId,
  attempt,
  result,
  disable: reason,
}: AttemptEnd): Steps<readonly string[]> {
  const [, found] = yield* together(run(LOCK_ENDPOINT, { deliveryId }), get(LOCK_HELD, { deliveryId }))
  if (found === undefined || found.state !== 'pending') return []
  if (found.leaseId !== leaseId && result.fate !== 'delivered') return []
  const { seq, endpointId, accountId, subject } = found
  const { at } = attempt
  yield* run(ADD_ATTEMPT, encode(webhookAttempt, { ...attempt, deliveryId, number: found.attempts + 1 }))
  if (result.fate === 'retry') {
    const { nextAt } = result
    yield* together(run(POSTPONE, { seq, nextAt, at }), run(POSTPONE_BEHIND, { endpointId, subject, seq, nextAt }))
  } else yield* run(END, { seq, fate: result.fate, at })
  if (result.fate === 'delivered') yield* run(ARRIVED, { endpointId })
  else yield* run(FAILED, { endpointId, at })
  if (reason === null || (yield* run(DISABLE, { endpointId, reason, at })) === 0) return []
  const facts = JSON.stringify({ webhook_id: endpointId, reason })
  yield* together(run(FAIL_ALL, { endpointId, at }), run(TELL_DISABLED, { endpointId, accountId, facts, at }))
  return [endpointId]
}
