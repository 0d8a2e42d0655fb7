/** Calls that wait for room in their account's pool: put in, found, taken out in order, canceled, timed out. */
import type { CallLimits, HeldCall, NewLease, StoredRefusal } from '../../../../domain/models/calls/call-store.ts'
import type {
  CancelRequestOutcome,
  EnqueueOutcome,
  RequestStore,
  StoredRequest,
  TakenRequest,
} from '../../../../domain/models/queue/request-store.ts'
import { all, get, run, type Steps, together } from '../../statements/operation.ts'
import { command, postgresOnly, query } from '../../statements/statement.ts'
import { routerCall, routerInput } from '../../tables/calls.ts'
import { encode, integer, pick, type RowOf, shape } from '../../tables/table.ts'
import { lockPurses } from '../ledger/holds.ts'
import { keepHooks } from '../webhooks/keep-hook.ts'
import { findKeyHolder } from './call-key.ts'
import {
  enterPool,
  findAffordable,
  holdFor,
  isOpenedBefore,
  judgePool,
  leavePool,
  lockKnownPool,
  lockPool,
  settleCall,
  toCallHold,
  toUnaffordable,
} from './call-pool.ts'
import { addInput, CANCELED, dropInput, findResult, putResult, toCallBody, toCallEnd, WAITED } from './call-result.ts'
import { END_UNTIL, IS_HELD, toHeld } from './finish-call.ts'

const COUNT_WAITING = query(
  'calls.countWaiting',
  shape({ count: integer() }),
  `SELECT count(*) AS count FROM router_call WHERE account_id = :accountId AND state = 'waiting' AND seq < :before`,
)

function* countWaiting(accountId: string, before = Number.MAX_SAFE_INTEGER): Steps<number> {
  return (yield* get(COUNT_WAITING, { accountId, before }))?.count ?? 0
}

const seq = pick(routerCall, 'seq')
const ENQUEUE = query(
  'calls.enqueue',
  seq,
  (words) => `
    INSERT INTO router_call (id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at, hold_micros,
      spend_micros, costly, trace, plan, hook)
    VALUES (:id, :accountId, :key, :fingerprint, ${words.either('1', 'true')}, 'waiting', :modelId, :baseUrl, :createdAt, :expiresAt,
      :holdMicros, :spendMicros, :isCostly, :trace, :plan, coalesce(CAST(:hookId AS text), (
        SELECT '' FROM webhook_endpoint WHERE account_id = :accountId AND kind = 'account' LIMIT 1)))
    RETURNING seq`,
)
const enqueued = pick(
  routerCall,
  ...(['id', 'accountId', 'key', 'fingerprint', 'modelId', 'baseUrl', 'createdAt', 'expiresAt', 'holdMicros'] as const),
  ...(['spendMicros', 'isCostly', 'trace', 'plan'] as const),
)
// A try whose answer was lost may have put it in.
const FIND_OWN = query(
  'calls.findOwnQueued',
  seq,
  postgresOnly('SELECT seq FROM router_call WHERE id = :id AND queued AND account_id = :accountId'),
)
const id = pick(routerCall, 'id')
const FIND_OF_KEY = query(
  'calls.findQueuedOfKey',
  id,
  (words) =>
    `SELECT id FROM router_call WHERE account_id = :accountId AND key = :key AND queued ${words.either('= 1', '')}`,
)

type NewRequest = Parameters<RequestStore['enqueue']>[0]

export function* enqueueCall(
  request: NewRequest,
  { maxWaiting, isValid }: Parameters<RequestStore['enqueue']>[1],
): Steps<EnqueueOutcome> {
  const { id, accountId, key, hook = null, createdAt } = request
  const load = yield* lockPool(accountId)
  const own = yield* get(FIND_OWN, { id, accountId })
  if (own !== undefined) return { outcome: 'queued', position: yield* countWaiting(accountId, own.seq) }
  if (isOpenedBefore(request, load)) return { outcome: 'keys_changed' }
  const verdict = yield* findKeyHolder(request)
  if (verdict.use === 'other_request') return { outcome: 'other_request' }
  if (verdict.use !== 'free') {
    const same = yield* get(FIND_OF_KEY, { accountId, key })
    return same === undefined ? { outcome: 'unusable' } : { outcome: 'repeated', id: same.id }
  }
  const hold = toCallHold(request, id, 0)
  const purses = hold === null ? null : yield* lockPurses([hold])
  const affordable = findAffordable(request, { id, attempt: 0, purses })
  if (affordable === undefined) return toUnaffordable(request, { id, attempt: 0, purses })
  if (!isValid) return { outcome: 'invalid' }
  const waiting = yield* countWaiting(accountId)
  if (waiting >= maxWaiting) return { outcome: 'backlog_full' }
  if (hook !== null) yield* keepHooks([{ accountId, hook, at: createdAt }])
  const fields = encode(enqueued, { ...affordable, trace: request.trace ?? null, plan: affordable.plan ?? null })
  const row = yield* get(ENQUEUE, { ...fields, hookId: hook?.id ?? null })
  if (row === undefined) throw new Error(`The call ${id} was not written.`)
  yield* addInput(row.seq, request.body, request.bodyBytes)
  yield* holdFor(affordable, { id, attempt: 0, purses })
  return { outcome: 'queued', position: waiting }
}

const request = pick(routerCall, 'seq', 'id', 'modelId', 'state', 'holdMicros')
const OF_ID = (isTrue: string) => `FROM router_call WHERE id = :id AND queued ${isTrue} AND account_id = :accountId`
const FIND = query(
  'calls.findRequest',
  request,
  ({ either }) => `SELECT ${request.columns} ${OF_ID(either('= 1', ''))}`,
)
const LOCK = query(
  'calls.lockRequest',
  request,
  ({ either, lock }) => `SELECT ${request.columns} ${OF_ID(either('= 1', ''))} ${lock('UPDATE')}`,
)

export function* findRequest(accountId: string, id: string): Steps<StoredRequest | null> {
  const found = yield* get(FIND, { id, accountId })
  if (found === undefined) return null
  const { seq, modelId, state } = found
  const position = state === 'waiting' ? yield* countWaiting(accountId, seq) : null
  const result = yield* findResult(seq)
  return { id, modelId, state, position, end: result === null ? null : toCallEnd(result) }
}

const next = shape({
  ...pick(routerCall, 'seq', 'id', 'key', 'modelId', 'baseUrl', 'spendMicros', 'isCostly', 'holdMicros', 'isStopAsked')
    .fields,
  ...pick(routerCall, 'trace', 'fence', 'plan', 'attemptIndex').fields,
  ...pick(routerInput, 'body', 'hash').fields,
})
const NEXT = query(
  'calls.nextWaiting',
  next,
  ({ lock }) => `SELECT ${next.columns} FROM router_call JOIN router_input USING (seq)
    WHERE account_id = :accountId AND state = 'waiting' ORDER BY seq LIMIT 1 ${lock('UPDATE', 'router_call')}`,
)
// No two takes of a process have the same end of their lease, so it tells what an earlier try of the same take has taken.
const FIND_TAKEN = query(
  'calls.findTaken',
  next,
  postgresOnly(`SELECT ${next.columns} FROM router_call JOIN router_input USING (seq)
    WHERE state = 'running' AND queued AND account_id = :accountId AND owner = :owner AND lease_until = :until AND started_at = :now`),
)
const START = query(
  'calls.start',
  pick(routerCall, 'fence'),
  `UPDATE router_call SET state = 'running', started_at = :now, owner = :owner, lease_until = :until, fence = fence + 1
   WHERE seq = :seq RETURNING fence`,
)

export function* takeCall(
  accountId: string,
  limits: CallLimits,
  { now, lease: { owner, until } }: { readonly now: Date; readonly lease: NewLease },
): Steps<TakenRequest | null> {
  const load = yield* lockPool(accountId)
  const [own, first] = yield* together(get(FIND_TAKEN, { accountId, owner, until, now }), get(NEXT, { accountId }))
  if (own !== undefined) return toTaken(accountId, owner, own)
  if (first === undefined || judgePool(load, first, limits) !== 'free') return null
  const { seq, id, isCostly, spendMicros } = first
  const started = yield* get(START, { seq, now, owner, until })
  if (started === undefined) throw new Error(`The call ${id} was not started.`)
  yield* enterPool({ accountId, isCostly, spendMicros })
  return toTaken(accountId, owner, { ...first, fence: started.fence })
}

function toTaken(accountId: string, owner: string, call: RowOf<typeof next>): TakenRequest {
  const { seq, id, key, modelId, baseUrl, holdMicros, isStopAsked, trace, fence, plan, attemptIndex } = call
  return {
    ref: { seq, id, accountId, owner, fence },
    ...{ modelId, baseUrl, isKeyed: key !== null, isPaid: holdMicros !== null, isStopAsked, trace, plan, attemptIndex },
    body: toCallBody(call),
  }
}

const entry = pick(routerCall, 'spendMicros', 'isCostly')
const PUT_BACK = query(
  'calls.putBack',
  entry,
  (words) => `
    UPDATE router_call SET state = 'waiting', started_at = NULL, owner = NULL, lease_until = 0, sent = ${words.either('0', 'false')},
      losses = losses + :losses
    WHERE ${IS_HELD} RETURNING ${entry.columns}`,
)

export function* putBackCall(call: HeldCall, { isLoss }: { readonly isLoss: boolean }): Steps<boolean> {
  const { accountId } = call
  yield* lockKnownPool(accountId)
  const back = yield* get(PUT_BACK, { ...toHeld(call), losses: Number(isLoss) })
  if (back === undefined) return false
  yield* leavePool({ accountId, ...back })
  return true
}

const accountId = pick(routerCall, 'accountId')
// Steps through the index from account to account, however many calls each has waiting.
const ACCOUNTS_WAITING = query(
  'calls.accountsWaiting',
  accountId,
  `WITH RECURSIVE account(account_id) AS (
     SELECT min(account_id) FROM router_call WHERE state = 'waiting'
     UNION ALL
     SELECT (SELECT min(account_id) FROM router_call WHERE state = 'waiting' AND account_id > account.account_id)
     FROM account WHERE account.account_id IS NOT NULL)
   SELECT account_id FROM account WHERE account_id IS NOT NULL`,
)

export function* findAccountsWaiting(): Steps<string[]> {
  return (yield* all(ACCOUNTS_WAITING)).map(({ accountId }) => accountId)
}

const ASK_TO_STOP = command(
  'calls.askToStop',
  (words) => `UPDATE router_call SET stop_asked = ${words.either('1', 'true')} WHERE seq = :seq`,
)

export function* cancelCall(accountId: string, id: string, at: Date, forgetAt: Date): Steps<CancelRequestOutcome> {
  const [, found] = yield* together(lockKnownPool(accountId), get(LOCK, { id, accountId }))
  if (found === undefined) return 'not_found'
  if (found.state === 'running') {
    yield* run(ASK_TO_STOP, { seq: found.seq })
    return 'running'
  }
  if (found.state !== 'waiting') return 'ended'
  yield* endWaiting(found, { accountId, at, forgetAt, state: 'canceled', refusal: CANCELED })
  return 'canceled'
}

interface WaitingEnd {
  readonly accountId: string
  readonly at: Date
  readonly forgetAt: Date
  readonly state: 'canceled' | 'done'
  readonly refusal: StoredRefusal
}

/** Ends a call that never reached a provider: its hold goes back, and why it ended is remembered. */
function* endWaiting({ seq, id, holdMicros }: RowOf<typeof request>, end: WaitingEnd): Steps<void> {
  const { accountId, at, forgetAt, state, refusal } = end
  yield* putResult({ seq, accountId, end: { kind: 'refusal', refusal }, at, replayUntil: null })
  yield* run(END_UNTIL, { seq, state, expiresAt: forgetAt })
  yield* dropInput(seq, at)
  yield* settleCall({ id, attempt: 0, holdMicros }, { micros: 0, memo: refusal.refusal, at })
}

const impatient = pick(routerCall, 'accountId', 'id')
const IMPATIENT = query(
  'calls.impatient',
  impatient,
  (words) => `SELECT ${impatient.columns} FROM router_call ${words.either('INDEXED BY router_call_patience', '')}
    WHERE state = 'waiting' AND created_at < :before ORDER BY created_at LIMIT :limit`,
)

export function* findImpatient(before: Date, limit: number): Steps<RowOf<typeof impatient>[]> {
  return yield* all(IMPATIENT, { before, limit })
}

/** False when it does not wait any more. */
export function* timeOutCall(accountId: string, id: string, at: Date, forgetAt: Date): Steps<boolean> {
  const [, found] = yield* together(lockKnownPool(accountId), get(LOCK, { id, accountId }))
  if (found?.state !== 'waiting') return false
  yield* endWaiting(found, { accountId, at, forgetAt, state: 'done', refusal: WAITED })
  return true
}
