/** Messages whose time has come, given out under a lease; and what came of them. */
import type { DatabaseSync } from 'node:sqlite'
import type { Message } from '../../../../../domain/webhooks/webhook.ts'
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
import { prepareRows } from '../statement.ts'

export function prepareHasPending(database: DatabaseSync): (nothing: null) => boolean {
  const select = prepareRows<[number]>(
    database,
    `SELECT 1 FROM webhook_delivery WHERE state = 'pending' AND endpoint_id >= '' LIMIT 1`,
  )
  return () => select.get() !== undefined
}

export function prepareClaimDeliveries(database: DatabaseSync): (request: ClaimDeliveries) => ClaimedDelivery[] {
  // Steps through the index from endpoint to endpoint, however much waits for each.
  const next = prepareRows<[string | null]>(
    database,
    `SELECT min(endpoint_id) FROM webhook_delivery WHERE state = 'pending' AND endpoint_id > ?`,
  )
  const findDue = prepareRows<[...EndpointRow, number]>(
    database,
    `SELECT ${ENDPOINT_COLUMNS}, (
       SELECT count(*) FROM webhook_delivery WHERE endpoint_id = endpoint.id AND lease_id IS NOT NULL AND next_at > ?2)
     FROM webhook_endpoint AS endpoint WHERE id = ?1 AND state = 'enabled' AND EXISTS (
       SELECT 1 FROM webhook_delivery WHERE state = 'pending' AND endpoint_id = ?1 AND next_at <= ?2)`,
  )
  const take = prepareRows<DeliveryRow>(
    database,
    `UPDATE webhook_delivery SET lease_id = ?3, next_at = ?4 WHERE seq IN (
       SELECT seq FROM webhook_delivery AS due
       WHERE state = 'pending' AND endpoint_id = ?1 AND next_at <= ?2 AND NOT EXISTS (
         SELECT 1 FROM webhook_delivery AS earlier WHERE earlier.state = 'pending'
           AND earlier.endpoint_id = due.endpoint_id AND earlier.subject = due.subject AND earlier.seq < due.seq)
       ORDER BY next_at LIMIT ?5)
     RETURNING ${DELIVERY_COLUMNS}`,
  )
  let lastId = ''

  function listWaiting(): string[] {
    const ids: string[] = []
    for (let id = next.get('')?.[0] ?? null; id !== null; id = next.get(id)?.[0] ?? null) ids.push(id)
    return ids
  }

  return ({ leaseId, now, until, limit, perEndpoint }) => {
    const claimed: ClaimedDelivery[] = []
    // From where the last one stopped, so that whoever comes first in the index does not always come first.
    const ids = listWaiting()
    const from = ids.findIndex((id) => id > lastId)
    for (const id of from < 0 ? ids : [...ids.slice(from), ...ids.slice(0, from)]) {
      if (claimed.length >= limit) break
      lastId = id
      const row = findDue.get(id, now.getTime())
      if (row === undefined) continue
      const endpoint = toEndpoint(row as unknown as EndpointRow)
      const underWay = row[row.length - 1] as number
      const room = Math.min((endpoint.failingSince === null ? perEndpoint : 1) - underWay, limit - claimed.length)
      if (room <= 0) continue
      const taken = take.all(endpoint.id, now.getTime(), leaseId, until.getTime(), room)
      claimed.push(...taken.map((each) => toClaimed(each, endpoint)))
    }
    return claimed
  }
}

type HeldRow = [seq: number, endpointId: string, accountId: string, subject: string, attempts: number]

export function prepareFinishDeliveries(database: DatabaseSync): (ends: readonly AttemptEnd[]) => string[] {
  const selectHeld = prepareRows<HeldRow>(
    database,
    `SELECT seq, endpoint_id, account_id, subject, attempts FROM webhook_delivery
     WHERE id = ?1 AND state = 'pending' AND (lease_id = ?2 OR ?3)`,
  )
  const insertAttempt = database.prepare(`
    INSERT OR REPLACE INTO webhook_attempt (delivery_id, number, at, took_ms, outcome, status, response)
    VALUES (?, ?, ?, ?, ?, ?, ?)`)
  const end = database.prepare(`
    UPDATE webhook_delivery SET state = ?2, attempts = attempts + 1, first_at = coalesce(first_at, ?3), lease_id = NULL,
      ended_at = ?3 WHERE seq = ?1`)
  const postpone = database.prepare(`
    UPDATE webhook_delivery SET next_at = ?2, attempts = attempts + 1, first_at = coalesce(first_at, ?3), lease_id = NULL
    WHERE seq = ?1`)
  // What must wait for it anyway is not looked at before.
  const postponeBehind = database.prepare(`
    UPDATE webhook_delivery SET next_at = ?4
    WHERE state = 'pending' AND endpoint_id = ?1 AND subject = ?2 AND seq > ?3 AND next_at < ?4`)
  const arrived = database.prepare(`
    UPDATE webhook_endpoint SET failing_since = NULL WHERE id = ? AND failing_since IS NOT NULL`)
  const failed = database.prepare(`
    UPDATE webhook_endpoint SET failing_since = ?2 WHERE id = ?1 AND failing_since IS NULL`)
  const disable = prepareDisable(database)
  return (ends) =>
    ends.flatMap(({ deliveryId, leaseId, attempt, result, disable: reason }) => {
      const held = selectHeld.get(deliveryId, leaseId, Number(result.fate === 'delivered'))
      if (held === undefined) return []
      const [seq, endpointId, accountId, subject, attempts] = held
      const at = attempt.at.getTime()
      const { tookMs, outcome, status, response } = attempt
      insertAttempt.run(deliveryId, attempts + 1, at, tookMs, outcome, status, response)
      if (result.fate === 'retry') {
        const nextAt = result.nextAt.getTime()
        postpone.run(seq, nextAt, at)
        postponeBehind.run(endpointId, subject, seq, nextAt)
      } else end.run(seq, result.fate, at)
      if (result.fate === 'delivered') arrived.run(endpointId)
      else failed.run(endpointId, at)
      return reason !== null && disable({ endpointId, accountId, reason, at }) ? [endpointId] : []
    })
}

interface Disabling {
  readonly endpointId: string
  readonly accountId: string
  readonly reason: string
  readonly at: number
}

/** Other endpoints of the account are told, where they asked for it. */
function prepareDisable(database: DatabaseSync): (disabling: Disabling) => boolean {
  const disable = database.prepare(`
    UPDATE webhook_endpoint SET state = 'disabled', reason = ?2, disabled_at = ?3 WHERE id = ?1 AND state = 'enabled'`)
  const failAll = database.prepare(`
    UPDATE webhook_delivery SET state = 'failed', ended_at = ?2, lease_id = NULL WHERE endpoint_id = ?1 AND state = 'pending'`)
  const tell = database.prepare(`
    INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), other.id, other.account_id, 'webhook.disabled', ?1, ?3,
      json_object('webhook_id', ?1, 'reason', ?2), ?3
    FROM webhook_endpoint AS other
    WHERE other.account_id = ?4 AND kind = 'account' AND state = 'enabled' AND instr(events, ' webhook.disabled ') > 0`)
  return ({ endpointId, accountId, reason, at }) => {
    if (disable.run(endpointId, reason, at).changes === 0) return false
    failAll.run(endpointId, at)
    tell.run(endpointId, reason, at, accountId)
    return true
  }
}

export function prepareEnqueueMessage(database: DatabaseSync): (message: NewMessage) => void {
  const insert = database.prepare(`
    INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?6) ON CONFLICT (id) DO NOTHING`)
  return ({ endpointId, accountId, ...message }) => {
    const { id, type, subject, at, facts }: Message = message
    insert.run(id, endpointId, accountId, type, subject, at.getTime(), facts)
  }
}
