/**
 * Webhooks: endpoints, and the messages to them. An account's first endpoint makes its live jobs and calls tell: they carry a mark, so that
 * those of accounts without any cost nothing. The order of locks on a server: an endpoint, then its messages.
 */
import type { Delivery, Endpoint } from '../../../domain/webhooks/webhook.ts'
import type { AttemptEnd, EndpointChange, WebhookStore } from '../../../domain/webhooks/webhook-store.ts'
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
import { claimDeliveries, WAITING_ENDPOINTS } from './webhooks/claim-deliveries.ts'
import { finishOne } from './webhooks/finish-delivery.ts'

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
const PUT = command('webhooks.put', upsertInto(webhookEndpoint, webhookEndpoint, endpointRow))
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
  postgresOnly(`${WAITING_ENDPOINTS}
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
  claim: relaxed(claimDeliveries, { isTransaction: true }),
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
