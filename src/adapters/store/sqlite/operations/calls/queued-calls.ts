/** Calls that wait for room in their account's pool: put in, found, taken out in order, canceled, timed out. */
import type { DatabaseSync } from 'node:sqlite'
import type { StoredRefusal } from '../../../../../domain/models/calls/call-store.ts'
import type {
  CancelRequestOutcome,
  EnqueueOutcome,
  RequestState,
} from '../../../../../domain/models/queue/request-store.ts'
import type { NewHook } from '../../../../../domain/webhooks/webhook.ts'
import { CANCELED, type ResultFields, toRefusalFields, WAITED } from '../../../call-records.ts'
import { prepareRows } from '../statement.ts'
import { prepareKeepHook } from '../webhooks/endpoint-rows.ts'
import { prepareFindKeyHolder } from './call-key.ts'
import { type PoolLimits, prepareCallMoney, prepareCallPool } from './call-pool.ts'
import { prepareCallResults, prepareFindResult } from './call-result.ts'
import { prepareDropInput } from './finish-call.ts'

interface EnqueueInput {
  readonly id: string
  readonly keyId: string | null
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
  readonly hook: NewHook | null
  readonly trace: string | null
}

export function prepareEnqueueCall(database: DatabaseSync): (input: EnqueueInput) => EnqueueOutcome {
  const findKeyHolder = prepareFindKeyHolder(database)
  const findQueued = prepareRows<[id: string]>(
    database,
    'SELECT id FROM router_call WHERE account_id = ? AND key = ? AND queued = 1',
  )
  const money = prepareCallMoney(database)
  const countWaiting = prepareCountWaiting(database)
  const insert = database.prepare(`
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at,
      hold_micros, spend_micros, costly, hook, trace)
    VALUES (?, ?2, ?, ?, 1, 'waiting', ?, ?, ?, ?, ?, ?, ?,
      coalesce(?12, (SELECT '' FROM webhook_endpoint WHERE account_id = ?2 AND kind = 'account' LIMIT 1)), ?13)`)
  const keepHook = prepareKeepHook(database)
  const insertInput = database.prepare('INSERT INTO router_input (seq, body, hash, size_bytes) VALUES (?, ?, ?, ?)')

  function write(input: EnqueueInput): void {
    const { id, accountId, key, fingerprint, model, baseUrl, now, expiresAt, holdMicros, spendMicros, costly } = input
    const keyed = [id, accountId, key, fingerprint] as const
    if (input.hook !== null) keepHook(accountId, input.hook, now)
    const terms = [holdMicros, spendMicros, costly, input.hook?.id ?? null, input.trace] as const
    const row = insert.run(...keyed, model, baseUrl, now, expiresAt, ...terms)
    insertInput.run(row.lastInsertRowid, input.body, input.hash, input.sizeBytes)
  }

  return (input) => {
    const { id, accountId, key, holdMicros, now } = input
    const verdict = findKeyHolder(input)
    if (verdict.use === 'other_request') return { outcome: 'other_request' }
    if (verdict.use !== 'free') {
      const same = findQueued.get(accountId, key)
      return same === undefined ? { outcome: 'unusable' } : { outcome: 'repeated', id: same[0] }
    }
    if (holdMicros !== null && !money.canPay(accountId, holdMicros)) return { outcome: 'no_credits' }
    if (!input.isValid) return { outcome: 'invalid' }
    const waiting = countWaiting(accountId)
    if (waiting >= input.maxWaiting) return { outcome: 'backlog_full' }
    const labels = { pool: null, model: input.model, keyId: input.keyId }
    if (!money.hold({ id, accountId, attempt: 0, holdMicros }, now, labels)) return { outcome: 'no_credits' }
    write(input)
    return { outcome: 'queued', position: waiting }
  }
}

function prepareCountWaiting(database: DatabaseSync): (accountId: string, before?: number) => number {
  const count = prepareRows<[number]>(
    database,
    `SELECT count(*) FROM router_call WHERE account_id = ? AND state = 'waiting' AND seq < ?`,
  )
  return (accountId, before = Number.MAX_SAFE_INTEGER) => count.get(accountId, before)?.[0] ?? 0
}

type RequestRow = readonly [
  id: string,
  model: string,
  state: RequestState,
  position: number | null,
  result: ResultFields | null,
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
    return [id, model, state, position, findResult(seq)?.fields ?? null]
  }
}

interface TakeInput extends PoolLimits {
  readonly accountId: string
  readonly now: number
  readonly owner: string
  readonly leaseUntil: number
}

type TakenRow = [
  seq: number,
  id: string,
  key: string | null,
  modelId: string,
  baseUrl: string,
  spendMicros: number,
  costly: number,
  bytes: Uint8Array | null,
  hash: string | null,
  holdMicros: number | null,
  stopAsked: number,
  trace: string | null,
]

interface TakenCall {
  readonly seq: number
  readonly id: string
  readonly fence: number
  readonly modelId: string
  readonly baseUrl: string
  readonly isKeyed: boolean
  readonly isPaid: boolean
  readonly isStopAsked: boolean
  /** The body, or the hash of a stored one. */
  readonly bytes: Uint8Array | null
  readonly hash: string | null
  readonly trace: string | null
}

export function prepareTakeCall(database: DatabaseSync): (input: TakeInput) => TakenCall | null {
  const select = prepareRows<TakenRow>(
    database,
    `SELECT seq, id, key, model, base_url, spend_micros, costly, i.body, i.hash, hold_micros, stop_asked, trace
     FROM router_call JOIN router_input AS i USING (seq)
     WHERE account_id = ? AND state = 'waiting' ORDER BY seq LIMIT 1`,
  )
  const start = prepareRows<[fence: number]>(
    database,
    `UPDATE router_call SET state = 'running', started_at = ?2, owner = ?3, lease_until = ?4, fence = fence + 1
     WHERE seq = ?1 RETURNING fence`,
  )
  const pool = prepareCallPool(database)
  return (input) => {
    const row = select.get(input.accountId)
    if (row === undefined) return null
    const [seq, id, key, modelId, baseUrl, spendMicros, costly, bytes, hash, holdMicros, stopAsked, trace] = row
    const entry = { accountId: input.accountId, spendMicros, costly }
    const found = pool.look(entry, input)
    if (found.verdict !== 'free') return null
    pool.enter(entry, found)
    const [fence] = start.get(seq, input.now, input.owner, input.leaseUntil) ?? [0]
    return {
      ...{ seq, id, fence, modelId, baseUrl, bytes, hash, trace },
      isKeyed: key !== null,
      isPaid: holdMicros !== null,
      isStopAsked: stopAsked === 1,
    }
  }
}

interface PutBackInput {
  readonly seq: number
  readonly id: string
  readonly owner: string
  readonly fence: number
  /** 1: the node that had taken it was lost. */
  readonly loss: number
}

export function preparePutBackCall(database: DatabaseSync): (input: PutBackInput) => boolean {
  const update = prepareRows<[accountId: string, spendMicros: number, costly: number]>(
    database,
    `UPDATE router_call SET state = 'waiting', started_at = NULL, owner = NULL, lease_until = 0, sent = 0,
       losses = losses + ?5
     WHERE seq = ?1 AND id = ?2 AND state = 'running' AND owner = ?3 AND fence = ?4
     RETURNING account_id, spend_micros, costly`,
  )
  const pool = prepareCallPool(database)
  return ({ seq, id, owner, fence, loss }) => {
    const row = update.get(seq, id, owner, fence, loss)
    if (row === undefined) return false
    const [accountId, spendMicros, costly] = row
    pool.leave({ accountId, spendMicros, costly })
    return true
  }
}

export function prepareAccountsWaiting(database: DatabaseSync): (input: null) => string[] {
  const next = prepareRows<[string | null]>(
    database,
    `SELECT min(account_id) FROM router_call WHERE state = 'waiting' AND account_id > ?`,
  )
  return () => {
    const accounts: string[] = []
    // Steps through the index from account to account, however many calls each has waiting.
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
    dropInput(seq, at)
    results.insert({ seq, accountId, fields: toRefusalFields(refusal), at, replayUntil: null })
    update.run(seq, state, forgetAt)
  }
}

interface CancelCallInput {
  readonly accountId: string
  readonly id: string
  readonly at: number
  readonly forgetAt: number
}

export function prepareCancelCall(database: DatabaseSync): (input: CancelCallInput) => CancelRequestOutcome {
  const select = prepareRows<[...WaitingRow, state: RequestState]>(
    database,
    'SELECT seq, id, account_id, hold_micros, state FROM router_call WHERE id = ? AND queued = 1 AND account_id = ?',
  )
  const askToStop = database.prepare('UPDATE router_call SET stop_asked = 1 WHERE seq = ?')
  const endWaiting = prepareEndWaiting(database)
  return ({ accountId, id, at, forgetAt }) => {
    const row = select.get(id, accountId)
    if (row === undefined) return 'not_found'
    const [seq, callId, owner, holdMicros, state] = row
    if (state === 'running') {
      askToStop.run(seq)
      return 'running'
    }
    if (state !== 'waiting') return 'ended'
    endWaiting([seq, callId, owner, holdMicros], { state: 'canceled', at, forgetAt, refusal: CANCELED })
    return 'canceled'
  }
}

interface TimeOutInput {
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
