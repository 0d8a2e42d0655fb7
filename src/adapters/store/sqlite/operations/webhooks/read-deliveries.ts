/** What was sent and what came of it, looked at and sent again. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
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
import { prepareRows } from '../statement.ts'

interface OwnQuery {
  readonly accountId: string
  readonly id: string
}

export function prepareListDeliveries(
  database: DatabaseSync,
): (query: DeliveryQuery & { readonly accountId: string }) => Delivery[] {
  const prepare = (filter: string) =>
    prepareRows<DeliveryRow>(
      database,
      `SELECT ${DELIVERY_COLUMNS} FROM webhook_delivery WHERE account_id = ?1 ${filter}
         AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR endpoint_id = ?3)
         AND seq < coalesce((SELECT seq FROM webhook_delivery WHERE id = ?4 AND account_id = ?1), 9223372036854775807)
       ORDER BY seq DESC LIMIT ?5`,
    )
  const all = prepare('')
  const ofSubject = prepare('AND subject = ?6')
  return ({ accountId, endpointId, subject, state, before, limit }) => {
    const values: SQLInputValue[] = [accountId, state ?? null, endpointId ?? null, before ?? null, limit]
    return (subject === undefined ? all.all(...values) : ofSubject.all(...values, subject)).map(toDelivery)
  }
}

export function prepareFindDelivery(
  database: DatabaseSync,
): (query: OwnQuery) => { readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | null {
  const select = prepareRows<DeliveryRow>(
    database,
    `SELECT ${DELIVERY_COLUMNS} FROM webhook_delivery WHERE account_id = ? AND id = ?`,
  )
  const selectAttempts = prepareRows<AttemptRow>(
    database,
    `SELECT ${ATTEMPT_COLUMNS} FROM webhook_attempt WHERE delivery_id = ? ORDER BY number`,
  )
  return ({ accountId, id }) => {
    const row = select.get(accountId, id)
    if (row === undefined) return null
    return { delivery: toDelivery(row), attempts: selectAttempts.all(id).map(toAttempt) }
  }
}

// A try that is under way goes on; what comes of it counts.
const AGAIN = `state = 'pending', first_at = NULL, ended_at = NULL, next_at = iif(lease_id IS NULL, ?1, next_at)`

export function prepareReplayDelivery(
  database: DatabaseSync,
): (query: OwnQuery & { readonly now: Date }) => Delivery | null {
  const update = prepareRows<DeliveryRow>(
    database,
    `UPDATE webhook_delivery SET ${AGAIN} WHERE account_id = ?2 AND id = ?3 RETURNING ${DELIVERY_COLUMNS}`,
  )
  return ({ accountId, id, now }) => {
    const row = update.get(now.getTime(), accountId, id)
    return row === undefined ? null : toDelivery(row)
  }
}

export function prepareReplayRange(
  database: DatabaseSync,
): (query: OwnQuery & { readonly range: ReplayRange; readonly now: Date }) => number {
  const update = database.prepare(`
    UPDATE webhook_delivery SET ${AGAIN}
    WHERE account_id = ?2 AND endpoint_id = ?3 AND at >= ?4 AND at < ?5
      AND (state = 'failed' OR (state = 'delivered' AND NOT ?6))`)
  return ({ accountId, id, range, now }) => {
    const { from, to, onlyFailed } = range
    const times = [from.getTime(), to.getTime()]
    return Number(update.run(now.getTime(), accountId, id, ...times, Number(onlyFailed)).changes)
  }
}

export function prepareBacklog(database: DatabaseSync): (limit: number) => number {
  const select = prepareRows<[number]>(
    database,
    `SELECT count(*) FROM (SELECT 1 FROM webhook_delivery WHERE state = 'pending' AND endpoint_id >= '' LIMIT ?)`,
  )
  return (limit) => select.get(limit)?.[0] ?? 0
}

export function prepareSweepDeliveries(
  database: DatabaseSync,
): (input: { readonly before: Date; readonly limit: number }) => number {
  const select = prepareRows<[id: string]>(database, 'SELECT id FROM webhook_delivery WHERE ended_at < ? LIMIT ?')
  const dropAttempts = database.prepare('DELETE FROM webhook_attempt WHERE delivery_id = ?')
  const drop = database.prepare('DELETE FROM webhook_delivery WHERE id = ?')
  const dropEndpoints = database.prepare(`
    DELETE FROM webhook_endpoint WHERE id IN (
      SELECT id FROM webhook_endpoint AS unused WHERE kind = 'job' AND used_at < ?1
        AND NOT EXISTS (SELECT 1 FROM webhook_delivery WHERE endpoint_id = unused.id)
        AND NOT EXISTS (SELECT 1 FROM job WHERE hook = unused.id AND hook > '' AND status IN ('queued', 'running', 'canceling'))
        AND NOT EXISTS (SELECT 1 FROM router_call WHERE hook = unused.id AND hook > '' AND state IN ('waiting', 'running'))
      LIMIT ?2)`)
  return ({ before, limit }) => {
    const ids = select.all(before.getTime(), limit)
    for (const [id] of ids) {
      dropAttempts.run(id)
      drop.run(id)
    }
    return ids.length + Number(dropEndpoints.run(before.getTime(), limit).changes)
  }
}
