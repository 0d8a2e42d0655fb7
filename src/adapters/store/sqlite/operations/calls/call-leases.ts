/** Leases of running calls: renewed in one statement, given up, taken over when they have lapsed. */
import type { DatabaseSync } from 'node:sqlite'
import { readKeptTrace } from '../../../../../../lib/tracing/trace-context.ts'
import type { CallProgress, HeldCall, UnfinishedCall } from '../../../../../domain/models/calls/call-store.ts'
import { prepareRows } from '../statement.ts'

type HeldFields = readonly [seq: number, owner: string, fence: number]

export function toHeldFields({ seq, owner, fence }: HeldCall): HeldFields {
  return [seq, owner, fence]
}

interface RenewInput {
  readonly calls: readonly HeldFields[]
  readonly until: number
}

const IS_HELD = `router_call.seq = held.value ->> 0 AND owner = held.value ->> 1 AND fence = held.value ->> 2
  AND state = 'running'`

export function prepareRenewCalls(database: DatabaseSync): (input: RenewInput) => [id: string, stopAsked: number][] {
  const update = prepareRows<[string, number]>(
    database,
    `UPDATE router_call SET lease_until = ?2 FROM json_each(?1) AS held WHERE ${IS_HELD}
     RETURNING router_call.id, stop_asked`,
  )
  return ({ calls, until }) => update.all(JSON.stringify(calls), until)
}

export function prepareReleaseCalls(database: DatabaseSync): (calls: readonly HeldFields[]) => void {
  const update = database.prepare(
    `UPDATE router_call SET owner = NULL, lease_until = 0 FROM json_each(?1) AS held WHERE ${IS_HELD}`,
  )
  return (calls) => {
    update.run(JSON.stringify(calls))
  }
}

interface LapsedQuery {
  /** The one who asks. */
  readonly owner: string
  readonly lapsedBefore: number
  readonly ownLapsedBefore: number
  /** Calls that the asking node has under way: it does not take them away from itself. */
  readonly except: readonly number[]
}

interface TakeLapsedInput extends LapsedQuery {
  readonly leaseUntil: number
  readonly limit: number
}

const IS_LAPSED = `state = 'running' AND (owner IS NULL OR (owner <> ?1 AND lease_until < ?2)
  OR (owner = ?1 AND lease_until < ?3 AND seq NOT IN (SELECT value FROM json_each(?4))))`

/** Asked of the reader, so that a look that finds nothing does not occupy the writer. */
export function prepareHasLapsedCalls(database: DatabaseSync): (query: LapsedQuery) => boolean {
  const select = prepareRows<[number]>(database, `SELECT 1 FROM router_call WHERE ${IS_LAPSED} LIMIT 1`)
  return ({ owner, lapsedBefore, ownLapsedBefore, except }) =>
    select.get(owner, lapsedBefore, ownLapsedBefore, JSON.stringify(except)) !== undefined
}

type TakenRow = [
  seq: number,
  id: string,
  accountId: string,
  fence: number,
  key: string | null,
  queued: number,
  model: string,
  baseUrl: string,
  startedAt: number,
  progress: string | null,
  sent: number,
  stopAsked: number,
  losses: number,
  trace: string | null,
]

export function prepareTakeLapsedCalls(database: DatabaseSync): (input: TakeLapsedInput) => TakenRow[] {
  const update = prepareRows<TakenRow>(
    database,
    `UPDATE router_call SET owner = ?1, lease_until = ?5, fence = fence + 1
     WHERE seq IN (SELECT seq FROM router_call WHERE ${IS_LAPSED} ORDER BY seq LIMIT ?6)
     RETURNING seq, id, account_id, fence, key, queued, model, base_url, started_at, progress, sent, stop_asked, losses,
       trace`,
  )
  // The rows of an UPDATE come in no order.
  return ({ owner, lapsedBefore, ownLapsedBefore, except, leaseUntil, limit }) =>
    update
      .all(owner, lapsedBefore, ownLapsedBefore, JSON.stringify(except), leaseUntil, limit)
      .sort(([a], [b]) => a - b)
}

export function toUnfinishedCall(owner: string, row: TakenRow): UnfinishedCall {
  const [seq, id, accountId, fence, key, queued, model, baseUrl, startedAt, progress, ...flags] = row
  const [sent, stopAsked, losses, trace] = flags
  return {
    ref: { seq, id, accountId, owner, fence },
    modelId: model,
    baseUrl,
    progress: progress === null ? null : (JSON.parse(progress) as CallProgress),
    isQueued: queued === 1,
    isKeyed: key !== null,
    startedAt: new Date(startedAt),
    isSent: sent === 1,
    isStopAsked: stopAsked === 1,
    losses,
    trace: readKeptTrace(trace),
  }
}

export function prepareIsCallRunning(
  database: DatabaseSync,
): (call: { readonly seq: number; readonly id: string }) => boolean {
  const select = prepareRows<[number]>(
    database,
    `SELECT 1 FROM router_call WHERE seq = ? AND id = ? AND state = 'running'`,
  )
  return ({ seq, id }) => select.get(seq, id) !== undefined
}
