/**
 * The endpoints of webhooks. An account's first one makes its live jobs and calls tell: they carry a mark, so that those of accounts
 * without any cost nothing.
 */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
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
import { prepareRows } from '../statement.ts'

interface EndpointQuery {
  readonly accountId: string
  readonly id: string
}

const OWN = `account_id = ? AND kind = 'account'`
const PLACES = ENDPOINT_COLUMNS.split(', ').map(() => '?')

function toValues(endpoint: Endpoint): SQLInputValue[] {
  return [...toEndpointRow(endpoint)] as SQLInputValue[]
}

export function prepareCreateEndpoint(
  database: DatabaseSync,
): (input: { readonly endpoint: Endpoint; readonly max: number }) => boolean {
  const count = prepareRows<[number]>(database, `SELECT count(*) FROM webhook_endpoint WHERE ${OWN}`)
  const insert = database.prepare(
    `INSERT INTO webhook_endpoint (${ENDPOINT_COLUMNS}, used_at) VALUES (${PLACES.join(', ')}, ?)`,
  )
  const markJobs = database.prepare(`
    UPDATE job SET hook = '' WHERE account_id = ? AND status IN ('queued', 'running', 'canceling') AND hook IS NULL`)
  const markCalls = database.prepare(`
    UPDATE router_call SET hook = '' WHERE account_id = ? AND queued = 1 AND state IN ('waiting', 'running') AND hook IS NULL`)
  const setMark = prepareSetMark(database)
  return ({ endpoint, max }) => {
    const known = count.get(endpoint.accountId)?.[0] ?? 0
    if (known >= max) return false
    insert.run(...toValues(endpoint), endpoint.createdAt.getTime())
    if (known === 0) {
      markJobs.run(endpoint.accountId)
      markCalls.run(endpoint.accountId)
    }
    setMark(endpoint.accountId)
    return true
  }
}

/** The highest balance below which an endpoint of the account is to be told. */
function prepareSetMark(database: DatabaseSync): (accountId: string) => void {
  const update = database.prepare(`
    UPDATE credit_account SET low_mark = (
      SELECT max(low_mark) FROM webhook_endpoint AS endpoint
      WHERE endpoint.account_id = ?1 AND kind = 'account' AND state = 'enabled' AND instr(events, ' credits.low ') > 0)
    WHERE account_id = ?1`)
  return (accountId) => void update.run(accountId)
}

export function prepareListEndpoints(database: DatabaseSync): (accountId: string) => Endpoint[] {
  const select = prepareRows<EndpointRow>(
    database,
    `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE ${OWN} ORDER BY created_at, id`,
  )
  return (accountId) => select.all(accountId).map(toEndpoint)
}

export function prepareFindEndpoint(database: DatabaseSync): (query: EndpointQuery) => Endpoint | null {
  const select = prepareRows<EndpointRow>(
    database,
    `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE ${OWN} AND id = ?`,
  )
  return ({ accountId, id }) => {
    const row = select.get(accountId, id)
    return row === undefined ? null : toEndpoint(row)
  }
}

export function preparePutEndpoint(database: DatabaseSync): (endpoint: Endpoint) => void {
  const columns = ENDPOINT_COLUMNS.split(', ').slice(1)
  const upsert = database.prepare(`
    INSERT INTO webhook_endpoint (${ENDPOINT_COLUMNS}, used_at) VALUES (${PLACES.join(', ')}, ?)
    ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`)
  return (endpoint) => void upsert.run(...toValues(endpoint), endpoint.changedAt.getTime())
}

export function prepareChangeEndpoint(
  database: DatabaseSync,
): (query: EndpointQuery & { readonly change: EndpointChange; readonly now: Date }) => Endpoint | null {
  const find = prepareFindEndpoint(database)
  const put = preparePutEndpoint(database)
  const setMark = prepareSetMark(database)
  return ({ accountId, id, change, now }) => {
    const endpoint = find({ accountId, id })
    if (endpoint === null) return null
    const changed = toChanged(endpoint, change, now)
    put(changed)
    setMark(accountId)
    return changed
  }
}

export function prepareRemoveEndpoint(database: DatabaseSync): (query: EndpointQuery) => boolean {
  const remove = database.prepare(`DELETE FROM webhook_endpoint WHERE ${OWN} AND id = ?`)
  const dropAttempts = database.prepare(`
    DELETE FROM webhook_attempt WHERE delivery_id IN (SELECT id FROM webhook_delivery WHERE endpoint_id = ?)`)
  const dropDeliveries = database.prepare('DELETE FROM webhook_delivery WHERE endpoint_id = ?')
  const setMark = prepareSetMark(database)
  return ({ accountId, id }) => {
    if (remove.run(accountId, id).changes === 0) return false
    dropAttempts.run(id)
    dropDeliveries.run(id)
    setMark(accountId)
    return true
  }
}

/** With the job or call that names it: in the same transaction, and before it. One that was given up is tried anew. */
export function prepareKeepHook(database: DatabaseSync): (accountId: string, hook: NewHook, now: number) => void {
  const upsert = database.prepare(`
    INSERT INTO webhook_endpoint (id, account_id, kind, url, description, events, secret, state, created_at, changed_at, used_at)
    VALUES (?1, ?2, 'job', ?3, '', ?4, ?5, 'enabled', ?6, ?6, ?6)
    ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, state = 'enabled', reason = NULL, disabled_at = NULL,
      failing_since = iif(state = 'enabled', failing_since, NULL)`)
  return (accountId, { id, url, events, secret }, now) =>
    void upsert.run(id, accountId, url, toEventsText(events), secret, now)
}
