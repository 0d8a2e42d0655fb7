/**
 * Webhooks: endpoints, and the messages to them. An account's first endpoint makes its live jobs and calls tell: they carry a mark, so that
 * those of accounts without any cost nothing. The order of locks on a server: an endpoint, then its messages.
 */
import type { Delivery, Endpoint } from '../../../domain/webhooks/webhook.ts'
import type {
  AttemptEnd,
  ClaimedDelivery,
  EndpointChange,
  WebhookStore,
} from '../../../domain/webhooks/webhook-store.ts'
import {
  all,
  chore,
  defineStore,
  durable,
  get,
  type OpenStore,
  read,
  relaxed,
  run,
  type Steps,
  together,
} from '../statements/operation.ts'
import { both, command, postgresOnly, query, selectFrom, upsertInto } from '../statements/statement.ts'
import { encode, integer, omit, pick, type RowOf, shape } from '../tables/table.ts'
import { webhookAttempt, webhookDelivery, webhookEndpoint } from '../tables/webhooks.ts'

const endpointRow = omit(webhookEndpoint, 'usedAt')
const OWN = `account_id = :accountId AND kind = 'account'`

const LOCK_ACCOUNT = command(
  'webhooks.lockAccount',
  postgresOnly('SELECT 1 FROM account WHERE id = :accountId FOR NO KEY UPDATE'),
)
const COUNT = query(
  'webhooks.count',
  shape({ known: integer() }),
  `SELECT count(*) AS known FROM webhook_endpoint WHERE ${OWN}`,
)
// When a job last named it stays as it is: only a new row needs it.
const PUT = command('webhooks.put', upsertInto(webhookEndpoint).replace(', used_at = excluded.used_at', ''))
const MARK_JOBS = command(
  'webhooks.markJobs',
  both({
    sqlite: `UPDATE job SET hook = ''
      WHERE account_id = :accountId AND status IN ('queued', 'running', 'canceling') AND hook IS NULL`,
    // In the order in which everybody locks jobs.
    postgres: `
      WITH live AS MATERIALIZED (
        SELECT id FROM job WHERE account_id = :accountId AND hook IS NULL ORDER BY id FOR NO KEY UPDATE)
      UPDATE job SET hook = '' FROM live WHERE job.id = live.id`,
  }),
)
const MARK_CALLS = command(
  'webhooks.markCalls',
  ({ either }) => `UPDATE router_call SET hook = '' WHERE account_id = :accountId AND ${either('queued = 1', 'queued')}
    AND state IN ('waiting', 'running') AND hook IS NULL`,
)
/** The highest balance below which an endpoint of the account is to be told. */
const SET_MARK = command(
  'webhooks.setMark',
  `UPDATE credit_account SET low_mark = (
     SELECT max(low_mark) FROM webhook_endpoint AS endpoint WHERE endpoint.account_id = :accountId
       AND kind = 'account' AND state = 'enabled' AND events LIKE '% credits.low %')
   WHERE account_id = :accountId`,
)
const LIST = query(
  'webhooks.list',
  endpointRow,
  selectFrom(webhookEndpoint, `WHERE ${OWN} ORDER BY created_at, id`, endpointRow),
)
const FIND = query('webhooks.find', endpointRow, selectFrom(webhookEndpoint, `WHERE ${OWN} AND id = :id`, endpointRow))
const LOCK = query('webhooks.lock', endpointRow, (words) =>
  selectFrom(webhookEndpoint, `WHERE ${OWN} AND id = :id ${words.lock('UPDATE')}`, endpointRow),
)
const REMOVE = command('webhooks.remove', `DELETE FROM webhook_endpoint WHERE ${OWN} AND id = :id`)
const DROP_ATTEMPTS_TO = command(
  'webhooks.dropAttemptsTo',
  'DELETE FROM webhook_attempt WHERE delivery_id IN (SELECT id FROM webhook_delivery WHERE endpoint_id = :endpointId)',
)
const DROP_DELIVERIES_TO = command(
  'webhooks.dropDeliveriesTo',
  'DELETE FROM webhook_delivery WHERE endpoint_id = :endpointId',
)

function* put(endpoint: Endpoint): Steps<void> {
  yield* run(PUT, encode(webhookEndpoint, { ...endpoint, usedAt: endpoint.changedAt }))
}

/** The endpoint as it is after a change. */
function toChanged(endpoint: Endpoint, change: EndpointChange, now: Date): Endpoint {
  const clean = change.state === 'enabled' ? { reason: null, disabledAt: null, failingSince: null } : {}
  return { ...endpoint, ...change, ...clean, changedAt: now }
}

function* dropDeliveries(endpointId: string): Steps<void> {
  yield* together(run(DROP_ATTEMPTS_TO, { endpointId }), run(DROP_DELIVERIES_TO, { endpointId }))
}

/** Steps through the index from endpoint to endpoint, however much waits for each. */
const WAITING = `
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
  (words) => `${WAITING}
    SELECT ${endpointRow.columns} FROM webhook_endpoint AS endpoint
    WHERE id IN (SELECT endpoint_id FROM waiting) AND state = 'enabled' AND EXISTS (
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

/** Of one message. Returns the endpoint when it was disabled by it. */
function* finishOne({ deliveryId, leaseId, attempt, result, disable: reason }: AttemptEnd): Steps<readonly string[]> {
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

const ENQUEUE = command(
  'webhooks.enqueue',
  `INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
   VALUES (:id, :endpointId, :accountId, :type, :subject, :at, :facts, :at) ON CONFLICT (id) DO NOTHING`,
)
const PENDING = (
  limit: string,
) => `SELECT 1 AS waiting FROM webhook_delivery WHERE state = 'pending' AND endpoint_id >= ''
  ORDER BY endpoint_id, next_at LIMIT ${limit}`
const HAS_PENDING = query('webhooks.hasPending', shape({ waiting: integer() }), PENDING('1'))
const BACKLOG = query(
  'webhooks.backlog',
  shape({ waiting: integer() }),
  `SELECT count(*) AS waiting FROM (${PENDING(':limit')}) AS pending`,
)

const listDeliveries = (name: string, filter: string) =>
  query(
    name,
    webhookDelivery,
    selectFrom(
      webhookDelivery,
      `WHERE account_id = :accountId ${filter}
         AND (CAST(:state AS text) IS NULL OR state = :state) AND (CAST(:endpointId AS text) IS NULL OR endpoint_id = :endpointId)
         AND seq < coalesce((SELECT seq FROM webhook_delivery WHERE id = :before AND account_id = :accountId), 9223372036854775807)
       ORDER BY seq DESC LIMIT :limit`,
    ),
  )
const DELIVERIES = listDeliveries('webhooks.deliveries', '')
const DELIVERIES_ABOUT = listDeliveries('webhooks.deliveriesAbout', 'AND subject = :subject')
const DELIVERY = query(
  'webhooks.delivery',
  webhookDelivery,
  selectFrom(webhookDelivery, 'WHERE account_id = :accountId AND id = :id'),
)
const attemptRow = omit(webhookAttempt, 'deliveryId')
const ATTEMPTS = query(
  'webhooks.attempts',
  attemptRow,
  selectFrom(webhookAttempt, 'WHERE delivery_id = :id ORDER BY number', attemptRow),
)

// A try that is under way goes on; what comes of it counts.
const AGAIN = `state = 'pending', first_at = NULL, ended_at = NULL, next_at = CASE WHEN lease_id IS NULL THEN :now ELSE next_at END`
const REPLAY = query(
  'webhooks.replay',
  webhookDelivery,
  `UPDATE webhook_delivery SET ${AGAIN} WHERE account_id = :accountId AND id = :id RETURNING ${webhookDelivery.columns}`,
)
const REPLAY_RANGE = command(
  'webhooks.replayRange',
  `UPDATE webhook_delivery SET ${AGAIN}
   WHERE account_id = :accountId AND endpoint_id = :endpointId AND at >= :from AND at < :to
     AND (state = 'failed' OR (state = 'delivered' AND CAST(:onlyFailed AS integer) = 0))`,
)
const FIND_OLD = query(
  'webhooks.findOld',
  pick(webhookDelivery, 'id'),
  'SELECT id FROM webhook_delivery WHERE ended_at < :before ORDER BY ended_at LIMIT :limit',
)
const DROP_ATTEMPTS = command(
  'webhooks.dropAttempts',
  (words) => `DELETE FROM webhook_attempt WHERE ${words.isIn('delivery_id', ':ids')}`,
)
const DROP_OLD = command(
  'webhooks.dropOld',
  (words) => `DELETE FROM webhook_delivery WHERE ${words.isIn('id', ':ids')}`,
)
// On a server a job that ended while an endpoint was being removed has told it.
const FIND_LOST = query(
  'webhooks.findLost',
  pick(webhookDelivery, 'endpointId'),
  postgresOnly(`${WAITING}
    SELECT endpoint_id FROM waiting WHERE endpoint_id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM webhook_endpoint WHERE id = waiting.endpoint_id)`),
)
const SWEEP_ENDPOINTS = command(
  'webhooks.sweepEndpoints',
  ({ either }) => `
    DELETE FROM webhook_endpoint WHERE id IN (
      SELECT id FROM webhook_endpoint AS unused WHERE kind = 'job' AND used_at < :before
        AND NOT EXISTS (SELECT 1 FROM webhook_delivery WHERE endpoint_id = unused.id)
        AND NOT EXISTS (SELECT 1 FROM job WHERE hook = unused.id AND hook > ''
          ${either(`AND status IN ('queued', 'running', 'canceling')`, '')})
        AND NOT EXISTS (SELECT 1 FROM router_call WHERE hook = unused.id AND hook > '' AND state IN ('waiting', 'running'))
      LIMIT :limit)`,
)

function toDelivery(row: RowOf<typeof webhookDelivery>): Delivery {
  const { id, type, subject, at, facts, endpointId, state, attempts, nextAt, endedAt } = row
  return {
    id,
    type,
    subject,
    at,
    facts,
    endpointId,
    state,
    attempts,
    nextAt: state === 'pending' ? nextAt : null,
    endedAt,
  }
}

interface WebhookSteps extends Omit<WebhookStore, 'finish'> {
  finishOne(end: AttemptEnd): Promise<readonly string[]>
}

export const webhookSteps = defineStore<WebhookSteps>('webhooks', {
  // Under the account's lock: a submit sees the endpoint, or its job is marked here.
  create: durable(function* (endpoint, { max }) {
    const { accountId } = endpoint
    const [, counted] = yield* together(run(LOCK_ACCOUNT, { accountId }), get(COUNT, { accountId }))
    const known = counted?.known ?? 0
    if (known >= max) return false
    yield* put(endpoint)
    if (known === 0) yield* together(run(MARK_JOBS, { accountId }), run(MARK_CALLS, { accountId }))
    yield* run(SET_MARK, { accountId })
    return true
  }),
  list: read(function* (accountId) {
    return yield* all(LIST, { accountId })
  }),
  find: read(function* (accountId, id) {
    return (yield* get(FIND, { accountId, id })) ?? null
  }),
  change: durable(function* (accountId, id, change, now) {
    const endpoint = yield* get(LOCK, { accountId, id })
    if (endpoint === undefined) return null
    const changed = toChanged(endpoint, change, now)
    yield* put(changed)
    yield* run(SET_MARK, { accountId })
    return changed
  }),
  remove: durable(function* (accountId, id) {
    if ((yield* run(REMOVE, { accountId, id })) === 0) return false
    yield* dropDeliveries(id)
    yield* run(SET_MARK, { accountId })
    return true
  }),
  putOperatorEndpoint: durable(put, { isRepeatable: true }),
  enqueue: durable(
    function* (message) {
      yield* run(ENQUEUE, encode(webhookDelivery, message))
    },
    { isRepeatable: true },
  ),
  // Repeated, it takes others: those of the first time come back when their lease lapses, as after a power cut.
  claim: relaxed(
    function* ({ leaseId, now, until, limit, perEndpoint }) {
      const claimed: ClaimedDelivery[] = []
      for (const endpoint of yield* all(LOCK_DUE, { now, limit })) {
        const room = limit - claimed.length
        if (room <= 0) break
        const most = endpoint.failingSince === null ? perEndpoint : 1
        for (const row of yield* all(TAKE, { endpointId: endpoint.id, leaseId, now, until, room, most })) {
          const { id, type, subject, at, facts, attempts, firstAt } = row
          claimed.push({ id, type, subject, at, facts, attempts, firstAt, leaseId, endpoint })
        }
      }
      return claimed
    },
    { isTransaction: true },
  ),
  finishOne: durable(finishOne, { isEssential: true, isRepeatable: true }),
  hasPending: read(function* () {
    return (yield* get(HAS_PENDING)) !== undefined
  }),
  deliveries: read(function* (accountId, { endpointId = null, subject, state = null, before = null, limit }) {
    const values = { accountId, endpointId, state, before, limit }
    const rows = yield* subject === undefined ? all(DELIVERIES, values) : all(DELIVERIES_ABOUT, { ...values, subject })
    return rows.map(toDelivery)
  }),
  delivery: read(function* (accountId, id) {
    const row = yield* get(DELIVERY, { accountId, id })
    return row === undefined ? null : { delivery: toDelivery(row), attempts: yield* all(ATTEMPTS, { id }) }
  }),
  replay: durable(function* (accountId, id, now) {
    const row = yield* get(REPLAY, { accountId, id, now })
    return row === undefined ? null : toDelivery(row)
  }),
  replayRange: durable(function* (accountId, endpointId, { from, to, onlyFailed }, now) {
    return yield* run(REPLAY_RANGE, { accountId, endpointId, from, to, onlyFailed: Number(onlyFailed), now })
  }),
  backlog: read(function* (limit) {
    return (yield* get(BACKLOG, { limit }))?.waiting ?? 0
  }),
  sweep: chore(
    function* (before, limit) {
      const ids = (yield* all(FIND_OLD, { before, limit })).map(({ id }) => id)
      if (ids.length > 0) yield* together(run(DROP_ATTEMPTS, { ids }), run(DROP_OLD, { ids }))
      for (const { endpointId } of yield* all(FIND_LOST)) yield* dropDeliveries(endpointId)
      return ids.length + (yield* run(SWEEP_ENDPOINTS, { before, limit }))
    },
    { isEssential: true },
  ),
})

export function createWebhookStore(open: OpenStore): WebhookStore {
  const { finishOne, ...steps } = open(webhookSteps)
  return { ...steps, finish: async (ends) => (await Promise.all(ends.map(finishOne))).flat() }
}
