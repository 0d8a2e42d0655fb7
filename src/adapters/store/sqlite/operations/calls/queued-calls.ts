/** Calls that wait for a place: put in, found, taken out in order, called off, given up. */
import type { DatabaseSync } from 'node:sqlite'
import type { StoredRefusal } from '../../../../../domain/models/call-store.ts'
import type { CancelRequestOutcome, RequestState } from '../../../../../domain/models/request-store.ts'
import { prepareRows } from '../statement.ts'
import { prepareFindKeyHolder } from './call-key.ts'
import { type PoolLimits, prepareCallMoney, prepareCallPool } from './call-pool.ts'
import { prepareCallResults, prepareFindResult, type ResultRow } from './call-result.ts'
import { prepareDropInput } from './finish-call.ts'

export interface EnqueueInput {
  readonly id: string
  readonly accountId: string
  readonly key: string | null
  readonly fingerprint: string
  readonly model: string
  readonly baseUrl: string
  readonly now: number
  readonly expiresAt: number
  readonly holdMicros: number | null
  readonly spendMicros: number
  readonly costly: number
  readonly body: Uint8Array | null
  readonly hash: string | null
  readonly sizeBytes: number
  readonly maxWaiting: number
  readonly isValid: boolean
}

export type EnqueueAnswer =
  | readonly ['queued', position: number]
  | readonly ['repeated', id: string]
  | readonly ['other_request' | 'unusable' | 'no_credits' | 'invalid' | 'backlog_full']

export function prepareEnqueueCall(database: DatabaseSync): (input: EnqueueInput) => EnqueueAnswer {
  const findKeyHolder = prepareFindKeyHolder(database)
  const findQueued = prepareRows<[id: string]>(
    database,
    'SELECT id FROM router_call WHERE account_id = ? AND key = ? AND queued = 1',
  )
  const money = prepareCallMoney(database)
  const countWaiting = prepareCountWaiting(database)
  const insert = database.prepare(`
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at,
      hold_micros, spend_micros, costly)
    VALUES (?, ?, ?, ?, 1, 'waiting', ?, ?, ?, ?, ?, ?, ?)`)
  const insertInput = database.prepare('INSERT INTO router_input (seq, body, hash, size_bytes) VALUES (?, ?, ?, ?)')

  function write(input: EnqueueInput): void {
    const { id, accountId, key, fingerprint, model, baseUrl, now, expiresAt, holdMicros, spendMicros, costly } = input
    const row = insert.run(
      id,
      accountId,
      key,
      fingerprint,
      model,
      baseUrl,
      now,
      expiresAt,
      holdMicros,
      spendMicros,
      costly,
    )
    insertInput.run(row.lastInsertRowid, input.body, input.hash, input.sizeBytes)
  }

  return (input) => {
    const { id, accountId, key, holdMicros, now } = input
    const verdict = findKeyHolder(input)
    if (verdict.use === 'other_request') return ['other_request']
    if (verdict.use !== 'free') {
      const same = findQueued.get(accountId, key)
      return same === undefined ? ['unusable'] : ['repeated', same[0]]
    }
    if (holdMicros !== null && !money.canPay(accountId, holdMicros)) return ['no_credits']
    if (!input.isValid) return ['invalid']
    const waiting = countWaiting(accountId)
    if (waiting >= input.maxWaiting) return ['backlog_full']
    money.hold({ id, accountId, attempt: 0, holdMicros }, now)
    write(input)
    return ['queued', waiting]
  }
}

function prepareCountWaiting(database: DatabaseSync): (accountId: string, before?: number) => number {
  const count = prepareRows<[number]>(
    database,
    `SELECT count(*) FROM router_call WHERE account_id = ? AND state = 'waiting' AND seq < ?`,
  )
  return (accountId, before = Number.MAX_SAFE_INTEGER) => count.get(accountId, before)?.[0] ?? 0
}

export type RequestRow = readonly [
  id: string,
  model: string,
  state: RequestState,
  position: number | null,
  result: ResultRow | null,
]

export function prepareFindRequest(
  database: DatabaseSync,
): (query: { readonly accountId: string; readonly id: string }) => RequestRow | null {
  const select = prepareRows<[seq: number, model: string, state: RequestState]>(
    database,
    'SELECT seq, model, state FROM router_call WHERE id = ? AND queued = 1 AND account_id = ?',
  )
  const countWaiting = prepareCountWaiting(database)
  const findResult = prepareFindResult(database)
  return ({ accountId, id }) => {
    const row = select.get(id, accountId)
    if (row === undefined) return null
    const [seq, model, state] = row
    const position = state === 'waiting' ? countWaiting(accountId, seq) : null
    return [id, model, state, position, findResult(seq)]
  }
}

export interface TakeInput extends PoolLimits {
  readonly accountId: string
  readonly now: number
}

export type TakenRow = [
  seq: number,
  id: string,
  key: string | null,
  model: string,
  baseUrl: string,
  spendMicros: number,
  costly: number,
  body: Uint8Array | null,
  hash: string | null,
  holdMicros: number | null,
]

export function prepareTakeCall(database: DatabaseSync): (input: TakeInput) => TakenRow | null {
  const select = prepareRows<TakenRow>(
    database,
    `SELECT seq, id, key, model, base_url, spend_micros, costly, i.body, i.hash, hold_micros
     FROM router_call JOIN router_input AS i USING (seq)
     WHERE account_id = ? AND state = 'waiting' ORDER BY seq LIMIT 1`,
  )
  const start = database.prepare(`UPDATE router_call SET state = 'running', started_at = ?2 WHERE seq = ?1`)
  const pool = prepareCallPool(database)
  return (input) => {
    const row = select.get(input.accountId)
    if (row === undefined) return null
    const place = { accountId: input.accountId, spendMicros: row[5], costly: row[6] }
    if (pool.look(place, input).verdict !== 'free') return null
    pool.enter(place)
    start.run(row[0], input.now)
    return row
  }
}

export function preparePutBackCall(
  database: DatabaseSync,
): (input: { readonly seq: number; readonly id: string }) => void {
  const update = prepareRows<[accountId: string, spendMicros: number, costly: number]>(
    database,
    `UPDATE router_call SET state = 'waiting', started_at = NULL WHERE seq = ? AND id = ? AND state = 'running'
     RETURNING account_id, spend_micros, costly`,
  )
  const pool = prepareCallPool(database)
  return ({ seq, id }) => {
    const row = update.get(seq, id)
    if (row !== undefined) pool.leave({ accountId: row[0], spendMicros: row[1], costly: row[2] })
  }
}

export function prepareAccountsWaiting(database: DatabaseSync): (input: null) => string[] {
  const next = prepareRows<[string | null]>(
    database,
    `SELECT min(account_id) FROM router_call WHERE state = 'waiting' AND account_id > ?`,
  )
  return () => {
    const accounts: string[] = []
    // From account to account, whatever each has waiting.
    for (let at = next.get('')?.[0] ?? null; at !== null; at = next.get(at)?.[0] ?? null) accounts.push(at)
    return accounts
  }
}

interface WaitingEnd {
  readonly state: 'canceled' | 'done'
  readonly at: number
  readonly forgetAt: number
  readonly refusal: StoredRefusal
}

type WaitingRow = [seq: number, id: string, accountId: string, holdMicros: number | null]

/** Ends a call that never reached a provider: its hold goes back, and why it ended is remembered. */
function prepareEndWaiting(database: DatabaseSync): (row: WaitingRow, end: WaitingEnd) => void {
  const update = database.prepare('UPDATE router_call SET state = ?2, expires_at = ?3 WHERE seq = ?1')
  const money = prepareCallMoney(database)
  const results = prepareCallResults(database)
  const dropInput = prepareDropInput(database)
  return ([seq, id, accountId, holdMicros], { state, at, forgetAt, refusal }) => {
    money.settle({ id, accountId, attempt: 0, holdMicros }, { micros: 0, memo: refusal.refusal, at })
    update.run(seq, state, forgetAt)
    dropInput(seq, at)
    const fields = [null, null, null, 0, null, JSON.stringify(refusal)] as const
    results.insert({ seq, fields, at, replayUntil: null })
  }
}

export interface CancelCallInput {
  readonly accountId: string
  readonly id: string
  readonly at: number
  readonly forgetAt: number
}

const CANCELED: StoredRefusal = {
  refusal: 'cancelled',
  message: 'the request was cancelled before it ran; nothing was charged',
  upstreamStatus: null,
  failures: null,
}
const WAITED: StoredRefusal = {
  refusal: 'waited_too_long',
  message: 'the request waited longer than this service lets it; it never ran and nothing was charged',
  upstreamStatus: null,
  failures: null,
}

export function prepareCancelCall(database: DatabaseSync): (input: CancelCallInput) => CancelRequestOutcome {
  const select = prepareRows<[...WaitingRow, state: RequestState]>(
    database,
    'SELECT seq, id, account_id, hold_micros, state FROM router_call WHERE id = ? AND queued = 1 AND account_id = ?',
  )
  const endWaiting = prepareEndWaiting(database)
  return ({ accountId, id, at, forgetAt }) => {
    const row = select.get(id, accountId)
    if (row === undefined) return 'not_found'
    const [seq, callId, owner, holdMicros, state] = row
    if (state === 'running') return 'running'
    if (state !== 'waiting') return 'ended'
    endWaiting([seq, callId, owner, holdMicros], { state: 'canceled', at, forgetAt, refusal: CANCELED })
    return 'canceled'
  }
}

export interface TimeOutInput {
  readonly before: number
  readonly at: number
  readonly forgetAt: number
  readonly limit: number
}

export function prepareTimeOutCalls(database: DatabaseSync): (input: TimeOutInput) => number {
  const select = prepareRows<WaitingRow>(
    database,
    `SELECT seq, id, account_id, hold_micros FROM router_call INDEXED BY router_call_patience
     WHERE state = 'waiting' AND created_at < ? LIMIT ?`,
  )
  const endWaiting = prepareEndWaiting(database)
  return ({ before, at, forgetAt, limit }) => {
    const rows = select.all(before, limit)
    for (const row of rows) endWaiting(row, { state: 'done', at, forgetAt, refusal: WAITED })
    return rows.length
  }
}
