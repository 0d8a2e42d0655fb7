/**
 * The endpoints of webhooks. An account's first one makes its live jobs and calls tell: they carry a mark, so that those of accounts
 * without any cost nothing.
 */
import type { Endpoint, NewHook } from '../../../../../domain/webhooks/webhook.ts'
import type { EndpointChange } from '../../../../../domain/webhooks/webhook-store.ts'
import {
  ENDPOINT_COLUMNS,
  type EndpointRow,
  toChanged,
  toEndpoint,
  toEndpointRow,
  toEventsText,
} from '../../../rows/webhook-rows.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockAccounts } from '../accounts/account-counters.ts'

const OWN = `account_id = $1 AND kind = 'account'`
const COLUMNS = ENDPOINT_COLUMNS.split(', ')
const PLACES = COLUMNS.map((_, index) => `$${index + 1}`).join(', ')
const USED_AT = `$${COLUMNS.length + 1}`

const COUNT = statement<[number]>('webhooks.count', `SELECT count(*) FROM webhook_endpoint WHERE ${OWN}`)
const PUT = statement(
  'webhooks.put',
  `INSERT INTO webhook_endpoint (${ENDPOINT_COLUMNS}, used_at) VALUES (${PLACES}, ${USED_AT})
   ON CONFLICT (id) DO UPDATE SET ${COLUMNS.slice(1)
     .map((column) => `${column} = excluded.${column}`)
     .join(', ')}`,
)
// In the order in which everybody locks jobs.
const MARK_JOBS = statement(
  'webhooks.mark-jobs',
  `WITH live AS MATERIALIZED (
     SELECT id FROM job WHERE account_id = $1 AND hook IS NULL ORDER BY id FOR NO KEY UPDATE)
   UPDATE job SET hook = '' FROM live WHERE job.id = live.id`,
)
const MARK_CALLS = statement(
  'webhooks.mark-calls',
  `UPDATE router_call SET hook = ''
   WHERE account_id = $1 AND queued AND state IN ('waiting', 'running') AND hook IS NULL`,
)
const SET_MARK = statement(
  'webhooks.set-mark',
  `UPDATE credit_account SET low_mark = (
     SELECT max(low_mark) FROM webhook_endpoint AS endpoint
     WHERE endpoint.account_id = $1 AND kind = 'account' AND state = 'enabled' AND strpos(events, ' credits.low ') > 0)
   WHERE account_id = $1`,
)

function toValues(endpoint: Endpoint, usedAt: Date): unknown[] {
  const values = toEndpointRow(endpoint).map((value) => (value instanceof Uint8Array ? toBytes(value) : value))
  return [...values, usedAt.getTime()]
}

/** Under the account's lock: a submit sees the endpoint, or its job is marked here. */
export async function createEndpoint(tx: Queryable, endpoint: Endpoint, max: number): Promise<boolean> {
  const { accountId } = endpoint
  await lockAccounts(tx, [accountId])
  const known = (await tx.get(COUNT, [accountId]))?.[0] ?? 0
  if (known >= max) return false
  await putEndpoint(tx, endpoint)
  if (known === 0) {
    await tx.run(MARK_JOBS, [accountId])
    await tx.run(MARK_CALLS, [accountId])
  }
  await tx.run(SET_MARK, [accountId])
  return true
}

export async function putEndpoint(tx: Queryable, endpoint: Endpoint): Promise<void> {
  await tx.run(PUT, toValues(endpoint, endpoint.changedAt))
}

const LIST = statement<EndpointRow>(
  'webhooks.list',
  `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE ${OWN} ORDER BY created_at, id`,
)

export async function listEndpoints(db: Queryable, accountId: string): Promise<Endpoint[]> {
  return (await db.all(LIST, [accountId])).map(toEndpoint)
}

const FIND = statement<EndpointRow>(
  'webhooks.find',
  `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE ${OWN} AND id = $2`,
)

export async function findEndpoint(db: Queryable, accountId: string, id: string): Promise<Endpoint | null> {
  const row = await db.get(FIND, [accountId, id])
  return row === undefined ? null : toEndpoint(row)
}

const LOCK = statement<EndpointRow>(
  'webhooks.lock',
  `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE ${OWN} AND id = $2 FOR UPDATE`,
)

export async function changeEndpoint(
  tx: Queryable,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  change: EndpointChange,
  now: Date,
): Promise<Endpoint | null> {
  const row = await tx.get(LOCK, [accountId, id])
  if (row === undefined) return null
  const changed = toChanged(toEndpoint(row), change, now)
  await putEndpoint(tx, changed)
  await tx.run(SET_MARK, [accountId])
  return changed
}

const REMOVE = statement('webhooks.remove', `DELETE FROM webhook_endpoint WHERE ${OWN} AND id = $2`)
const DROP = statement(
  'webhooks.drop-deliveries',
  `WITH gone AS (DELETE FROM webhook_delivery WHERE endpoint_id = $1 RETURNING id)
   DELETE FROM webhook_attempt USING gone WHERE delivery_id = gone.id`,
)

export async function removeEndpoint(tx: Queryable, accountId: string, id: string): Promise<boolean> {
  if ((await tx.run(REMOVE, [accountId, id])) === 0) return false
  await dropDeliveries(tx, id)
  await tx.run(SET_MARK, [accountId])
  return true
}

export async function dropDeliveries(tx: Queryable, endpointId: string): Promise<void> {
  await tx.run(DROP, [endpointId])
}

export interface KeptHook {
  readonly accountId: string
  readonly hook: NewHook
  readonly at: number
}

const STALE_MS = 3_600_000

// Only rows that are new, given up or long unused: one that many jobs name is not even locked.
const KEEP_HOOKS = statement(
  'webhooks.keep-hooks',
  `INSERT INTO webhook_endpoint AS known
     (id, account_id, kind, url, description, events, secret, state, created_at, changed_at, used_at)
   SELECT DISTINCT ON (id) id, account_id, 'job', url, '', events, secret, 'enabled', at, at, at
   FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[])
     AS new(id, account_id, url, events, secret, at)
   WHERE NOT EXISTS (
     SELECT 1 FROM webhook_endpoint AS used
     WHERE used.id = new.id AND used.state = 'enabled' AND used.used_at > new.at - ${STALE_MS})
   ORDER BY id
   ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, state = 'enabled', reason = NULL, disabled_at = NULL,
     failing_since = CASE WHEN known.state = 'enabled' THEN known.failing_since END`,
)

/** With the jobs or calls that name them: in the same transaction, and before them. One that was given up is tried anew. */
export async function keepHooks(tx: Queryable, hooks: readonly KeptHook[]): Promise<void> {
  if (hooks.length === 0) return
  await tx.run(KEEP_HOOKS, [
    hooks.map(({ hook }) => hook.id),
    hooks.map(({ accountId }) => accountId),
    hooks.map(({ hook }) => hook.url),
    hooks.map(({ hook }) => toEventsText(hook.events)),
    hooks.map(({ hook }) => toBytes(hook.secret)),
    hooks.map(({ at }) => at),
  ])
}

function toBytes(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
