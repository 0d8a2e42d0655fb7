/** Calls that wait for room in their account's pool: put in, found, taken out in order, canceled, timed out. */
import { readKeptTrace, writeTraceContext } from '../../../../../../lib/tracing/trace-context.ts'
import type { CallLimits, HeldCall, NewLease, StoredRefusal } from '../../../../../domain/models/calls/call-store.ts'
import type {
  CancelRequestOutcome,
  EnqueueOutcome,
  RequestState,
  RequestStore,
  StoredRequest,
  TakenRequest,
} from '../../../../../domain/models/queue/request-store.ts'
import {
  CANCELED,
  callHoldId,
  judgePool,
  toCallBody,
  toCallEnd,
  toRefusalFields,
  WAITED,
} from '../../../call-records.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockPurses } from '../credits/ledger-holds.ts'
import { keepHooks } from '../webhooks/endpoint-rows.ts'
import { toCallHold } from './call-hold.ts'
import { findKeyHolder } from './call-key.ts'
import { enterPool, leavePool, lockKnownPool, lockPool } from './call-pool.ts'
import { dropInput, findResult, fromBytes, insertResult, toBytes } from './call-result.ts'
import { settleCall } from './finish-call.ts'

const COUNT_WAITING = statement<[number]>(
  'calls.count-waiting',
  `SELECT count(*) FROM router_call WHERE account_id = $1 AND state = 'waiting' AND seq < $2`,
)
const ENQUEUE = statement<[seq: number]>(
  'calls.enqueue',
  `WITH added AS (
     INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at,
       hold_micros, spend_micros, costly, hook, trace)
     VALUES ($1, $2, $3, $4, true, 'waiting', $5, $6, $7, $8, $9, $10, $11,
       coalesce($15::text, (SELECT '' FROM webhook_endpoint WHERE account_id = $2 AND kind = 'account' LIMIT 1)), $16) RETURNING seq)
   INSERT INTO router_input (seq, body, hash, size_bytes) SELECT seq, $12, $13, $14 FROM added RETURNING seq`,
)
const IS_QUEUED = statement<[seq: number]>(
  'calls.is-queued',
  'SELECT seq FROM router_call WHERE id = $1 AND queued AND account_id = $2',
)

type NewRequest = Parameters<RequestStore['enqueue']>[0]

export async function enqueueCall(
  tx: Queryable,
  request: NewRequest,
  { maxWaiting, isValid, isAgain }: Parameters<RequestStore['enqueue']>[1] & { readonly isAgain: boolean },
): Promise<EnqueueOutcome> {
  const { id, accountId, key, fingerprint } = request
  const now = request.createdAt.getTime()
  await lockPool(tx, accountId)
  const own = isAgain ? await tx.get(IS_QUEUED, [id, accountId]) : undefined
  if (own !== undefined) return { outcome: 'queued', position: await countWaiting(tx, accountId, own[0]) }
  const verdict = await findKeyHolder(tx, { accountId, key, fingerprint, now })
  if (verdict.use === 'other_request') return { outcome: 'other_request' }
  if (verdict.use !== 'free') {
    const same = await findQueuedOfKey(tx, accountId, key)
    return same === null ? { outcome: 'unusable' } : { outcome: 'repeated', id: same }
  }
  const hold = toCallHold(request, callHoldId(id, 0))
  const purses = hold === null ? null : await lockPurses(tx, [hold])
  if (purses !== null && hold !== null && !purses.canHold(hold)) return { outcome: 'no_credits' }
  if (!isValid) return { outcome: 'invalid' }
  const waiting = await countWaiting(tx, accountId)
  if (waiting >= maxWaiting) return { outcome: 'backlog_full' }
  if (purses !== null && hold !== null) purses.hold(hold)
  await Promise.all([write(tx, request), purses?.write()])
  return { outcome: 'queued', position: waiting }
}

async function write(tx: Queryable, request: NewRequest): Promise<void> {
  const { id, accountId, key, fingerprint, modelId, baseUrl, createdAt, expiresAt, body } = request
  const [bytes, hash] = body.kind === 'inline' ? [body.bytes, null] : [null, body.hash]
  if (request.hook != null) await keepHooks(tx, [{ accountId, hook: request.hook, at: createdAt.getTime() }])
  await tx.get(ENQUEUE, [
    ...[id, accountId, key, fingerprint, modelId, baseUrl, createdAt.getTime(), expiresAt.getTime()],
    ...[request.holdMicros, request.spendMicros, request.isCostly],
    ...[toBytes(bytes), hash, request.bodyBytes, request.hook?.id ?? null],
    request.trace == null ? null : writeTraceContext(request.trace),
  ])
}

const FIND_QUEUED = statement<[id: string]>(
  'calls.find-queued-of-key',
  'SELECT id FROM router_call WHERE account_id = $1 AND key = $2 AND queued',
)

async function findQueuedOfKey(tx: Queryable, accountId: string, key: string | null): Promise<string | null> {
  return (await tx.get(FIND_QUEUED, [accountId, key]))?.[0] ?? null
}

async function countWaiting(db: Queryable, accountId: string, before = Number.MAX_SAFE_INTEGER): Promise<number> {
  return (await db.get(COUNT_WAITING, [accountId, before]))?.[0] ?? 0
}

const FIND = statement<[seq: number, model: string, state: RequestState]>(
  'calls.find-request',
  'SELECT seq, model, state FROM router_call WHERE id = $1 AND queued AND account_id = $2',
)

/** Its statements must see one moment: run in a transaction with a snapshot. */
export async function findRequest(snapshot: Queryable, accountId: string, id: string): Promise<StoredRequest | null> {
  const row = await snapshot.get(FIND, [id, accountId])
  if (row === undefined) return null
  const [seq, modelId, state] = row
  const position = state === 'waiting' ? await countWaiting(snapshot, accountId, seq) : null
  const result = await findResult(snapshot, seq)
  return { id, modelId, state, position, end: result === null ? null : toCallEnd(result.fields) }
}

type WaitingCall = [
  seq: number,
  id: string,
  key: string | null,
  modelId: string,
  baseUrl: string,
  spendMicros: number,
  isCostly: boolean,
  bytes: Uint8Array | null,
  hash: string | null,
  holdMicros: number | null,
  isStopAsked: boolean,
  trace: string | null,
]

const NEXT = statement<WaitingCall>(
  'calls.next-waiting',
  `SELECT seq, id, key, model, base_url, spend_micros, costly, i.body, i.hash, hold_micros, stop_asked, trace
   FROM router_call JOIN router_input AS i USING (seq)
   WHERE account_id = $1 AND state = 'waiting' ORDER BY seq LIMIT 1 FOR UPDATE OF router_call`,
)
const START = statement<[fence: number]>(
  'calls.start',
  `UPDATE router_call SET state = 'running', started_at = $2, owner = $3, lease_until = $4, fence = fence + 1
   WHERE seq = $1 RETURNING fence`,
)

// No two takes of a process have the same end of their lease, so it tells what an earlier try of the same take has taken.
const FIND_TAKEN = statement<[...WaitingCall, fence: number]>(
  'calls.find-taken',
  `SELECT seq, id, key, model, base_url, spend_micros, costly, i.body, i.hash, hold_micros, stop_asked, trace, fence
   FROM router_call JOIN router_input AS i USING (seq)
   WHERE state = 'running' AND queued AND account_id = $1 AND owner = $2 AND lease_until = $3 AND started_at = $4`,
)

interface Taking {
  readonly accountId: string
  readonly limits: CallLimits
  readonly now: number
  readonly lease: NewLease
  /** An earlier try may have been committed. */
  readonly isAgain: boolean
}

export async function takeCall(tx: Queryable, taking: Taking): Promise<TakenRequest | null> {
  const { accountId, limits, now, lease } = taking
  const load = await lockPool(tx, accountId)
  const own = taking.isAgain
    ? await tx.get(FIND_TAKEN, [accountId, lease.owner, lease.until.getTime(), now])
    : undefined
  if (own !== undefined) return toTaken(taking, own.slice(0, -1) as WaitingCall, own[own.length - 1] as number)
  const row = await tx.get(NEXT, [accountId])
  if (row === undefined) return null
  const [seq, id, , , , spendMicros, isCostly] = row
  if (judgePool(load, { isCostly, spendMicros }, limits) !== 'free') return null
  const [started] = await Promise.all([
    tx.get(START, [seq, now, lease.owner, lease.until.getTime()]),
    enterPool(tx, { accountId, isCostly, spendMicros }),
  ])
  if (started === undefined) throw new Error(`The call ${id} was not started.`)
  return toTaken(taking, row, started[0])
}

function toTaken({ accountId, lease }: Taking, row: WaitingCall, fence: number): TakenRequest {
  const [seq, id, key, modelId, baseUrl, , , bytes, hash, holdMicros, isStopAsked, trace] = row
  return {
    ref: { seq, id, accountId, owner: lease.owner, fence },
    modelId,
    baseUrl,
    isKeyed: key !== null,
    isPaid: holdMicros !== null,
    isStopAsked,
    body: toCallBody(fromBytes(bytes), hash),
    trace: readKeptTrace(trace),
  }
}

const PUT_BACK = statement<[spendMicros: number, isCostly: boolean]>(
  'calls.put-back',
  `UPDATE router_call SET state = 'waiting', started_at = NULL, owner = NULL, lease_until = 0, sent = false,
     losses = losses + $5
   WHERE seq = $1 AND id = $2 AND state = 'running' AND owner = $3 AND fence = $4 RETURNING spend_micros, costly`,
)

export async function putBackCall(tx: Queryable, call: HeldCall, isLoss: boolean): Promise<boolean> {
  const { seq, id, accountId, owner, fence } = call
  await lockKnownPool(tx, accountId)
  const row = await tx.get(PUT_BACK, [seq, id, owner, fence, Number(isLoss)])
  if (row === undefined) return false
  const [spendMicros, isCostly] = row
  await leavePool(tx, { accountId, spendMicros, isCostly })
  return true
}

// Steps through the index from account to account, however many calls each has waiting.
const ACCOUNTS_WAITING = statement<[accountId: string]>(
  'calls.accounts-waiting',
  `WITH RECURSIVE account AS (
     (SELECT account_id FROM router_call WHERE state = 'waiting' ORDER BY account_id LIMIT 1)
     UNION ALL
     SELECT (SELECT account_id FROM router_call WHERE state = 'waiting' AND account_id > account.account_id
             ORDER BY account_id LIMIT 1)
     FROM account WHERE account.account_id IS NOT NULL)
   SELECT account_id FROM account WHERE account_id IS NOT NULL`,
)

export async function findAccountsWaiting(db: Queryable): Promise<string[]> {
  return (await db.all(ACCOUNTS_WAITING)).map(([accountId]) => accountId)
}

type QueuedRow = [seq: number, state: RequestState, holdMicros: number | null]

const LOCK_QUEUED = statement<QueuedRow>(
  'calls.lock-queued',
  'SELECT seq, state, hold_micros FROM router_call WHERE id = $1 AND queued AND account_id = $2 FOR UPDATE',
)
const ASK_TO_STOP = statement('calls.ask-to-stop', 'UPDATE router_call SET stop_asked = true WHERE seq = $1')
const END_WAITING = statement('calls.end-waiting', 'UPDATE router_call SET state = $2, expires_at = $3 WHERE seq = $1')

interface WaitingEnd {
  readonly accountId: string
  readonly id: string
  readonly at: number
  readonly forgetAt: number
}

export async function cancelCall(tx: Queryable, end: WaitingEnd): Promise<CancelRequestOutcome> {
  const [, row] = await Promise.all([lockKnownPool(tx, end.accountId), tx.get(LOCK_QUEUED, [end.id, end.accountId])])
  if (row === undefined) return 'not_found'
  const [seq, state] = row
  if (state === 'running') {
    await tx.run(ASK_TO_STOP, [seq])
    return 'running'
  }
  if (state !== 'waiting') return 'ended'
  await endWaiting(tx, row, { ...end, state: 'canceled', refusal: CANCELED })
  return 'canceled'
}

/** Ends a call that never reached a provider: its hold goes back, and why it ended is remembered. */
async function endWaiting(
  tx: Queryable,
  [seq, , holdMicros]: QueuedRow,
  end: WaitingEnd & { readonly state: 'canceled' | 'done'; readonly refusal: StoredRefusal },
): Promise<void> {
  const { accountId, id, at, forgetAt, state, refusal } = end
  await insertResult(tx, { seq, accountId, fields: toRefusalFields(refusal), at, replayUntil: null })
  await tx.run(END_WAITING, [seq, state, forgetAt])
  await dropInput(tx, seq, at)
  await settleCall(tx, { id, attempt: 0, holdMicros }, { micros: 0, memo: refusal.refusal, at })
}

const IMPATIENT = statement<[accountId: string, id: string]>(
  'calls.impatient',
  `SELECT account_id, id FROM router_call WHERE state = 'waiting' AND created_at < $1 ORDER BY created_at LIMIT $2`,
)

export function findImpatient(db: Queryable, before: number, limit: number): Promise<[string, string][]> {
  return db.all(IMPATIENT, [before, limit])
}

/** False when it does not wait any more. */
export async function timeOutCall(tx: Queryable, end: WaitingEnd): Promise<boolean> {
  const [, row] = await Promise.all([lockKnownPool(tx, end.accountId), tx.get(LOCK_QUEUED, [end.id, end.accountId])])
  if (row?.[1] !== 'waiting') return false
  await endWaiting(tx, row, { ...end, state: 'done', refusal: WAITED })
  return true
}
