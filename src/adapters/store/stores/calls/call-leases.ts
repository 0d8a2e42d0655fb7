/**
 * Leases of running calls: renewed in one statement, given up, taken over when they have lapsed. On a server no lease lapses before its
 * own time says so, whatever time the caller believes in.
 */
import type { CallListQuery, CallStatus, ListedCall } from '../../../../domain/models/calls/call-list.ts'
import type {
  CallProgress,
  CallStore,
  HeldCall,
  ToldCall,
  ToldQuery,
  UnfinishedCall,
} from '../../../../domain/models/calls/call-store.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { both, command, postgresOnly, query, toRows, type Words } from '../../statements/statement.ts'
import { routerCall, routerResult } from '../../tables/calls.ts'
import { encode, pick, type RowOf, shape, text } from '../../tables/table.ts'
import { removeCalls } from './call-key.ts'
import { removeResults } from './call-result.ts'
import { IS_HELD, toHeld } from './finish-call.ts'

const HELD = { seq: 'bigint', owner: 'text', fence: 'bigint' } as const
// Locked by their numbers in order, as wherever several are: two that hold each other's next row would not end.
const mine = (words: Words) => `
    WITH mine AS MATERIALIZED (
      SELECT router_call.seq AS held_seq FROM ${words.rows(':calls', HELD)} AS held
      JOIN router_call ON router_call.seq = held.seq AND router_call.owner = held.owner AND router_call.fence = held.fence
      WHERE state = 'running' ORDER BY router_call.seq ${words.lock('NO KEY UPDATE', 'router_call')})`
const renewed = pick(routerCall, 'id', 'isStopAsked')
const RENEW = query(
  'calls.renew',
  renewed,
  (words) => `${mine(words)}
    UPDATE router_call SET lease_until = :until FROM mine WHERE router_call.seq = held_seq RETURNING ${renewed.columns}`,
)
const RELEASE = command(
  'calls.release',
  (words) => `${mine(words)}
    UPDATE router_call SET owner = NULL, lease_until = 0 FROM mine WHERE router_call.seq = held_seq`,
)

const toRefs = (calls: readonly HeldCall[]) =>
  toRows(
    'calls',
    calls.map(({ seq, owner, fence }) => ({ seq, owner, fence })),
  )

export function* renewCalls(calls: readonly HeldCall[], until: Date): Steps<RowOf<typeof renewed>[]> {
  return calls.length === 0 ? [] : yield* all(RENEW, { ...toRefs(calls), until })
}

export function* releaseCalls(calls: readonly HeldCall[]): Steps<void> {
  if (calls.length > 0) yield* run(RELEASE, toRefs(calls))
}

const taken = pick(
  routerCall,
  ...(['seq', 'id', 'accountId', 'fence', 'key', 'isQueued', 'modelId', 'baseUrl', 'startedAt', 'progress'] as const),
  ...(['isSent', 'isStopAsked', 'losses', 'trace', 'plan', 'attemptIndex'] as const),
)
// No two takes of a process have the same end of their lease, so it tells what an earlier try of the same take has taken.
const FIND_TAKEN = query(
  'calls.findTakenOver',
  taken,
  postgresOnly(`SELECT ${taken.columns} FROM router_call
    WHERE state = 'running' AND owner = :owner AND lease_until = :until AND seq <> ALL (:except) ORDER BY seq`),
)
const NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
const TAKE = query(
  'calls.takeLapsed',
  taken,
  both({
    sqlite: `
      UPDATE router_call SET owner = :owner, lease_until = :until, fence = fence + 1
      WHERE seq IN (
        SELECT seq FROM router_call WHERE state = 'running' AND (owner IS NULL OR (owner <> :owner AND lease_until < :lapsedBefore)
          OR (owner = :owner AND lease_until < :ownLapsedBefore AND seq NOT IN (SELECT value FROM json_each(:except))))
        ORDER BY seq LIMIT :limit)
      RETURNING ${taken.columns}`,
    // The server's time is volatile, so a step of its own: it is asked once, and not for every row.
    postgres: `
      WITH time AS MATERIALIZED (
        SELECT least(:lapsedBefore::bigint, ${NOW}) AS others, least(:ownLapsedBefore::bigint, ${NOW}) AS own),
      lapsed AS MATERIALIZED (
        SELECT seq AS lapsed_seq FROM router_call, time
        WHERE state = 'running' AND (owner IS NULL OR (owner <> :owner AND lease_until < time.others)
          OR (owner = :owner AND lease_until < time.own AND seq <> ALL (:except)))
        ORDER BY seq LIMIT :limit FOR UPDATE OF router_call SKIP LOCKED)
      UPDATE router_call SET owner = :owner, lease_until = :until, fence = fence + 1 FROM lapsed
      WHERE seq = lapsed_seq RETURNING ${taken.columns}`,
  }),
)

export function* takeLapsedCalls(options: Parameters<CallStore['takeLapsed']>[0]): Steps<UnfinishedCall[]> {
  const { lapsedBefore, ownLapsedBefore, limit } = options
  const { owner, until } = options.lease
  const except = options.except.map(({ seq }) => seq)
  const earlier = yield* all(FIND_TAKEN, { owner, until, except })
  const rows =
    earlier.length > 0 ? earlier : yield* all(TAKE, { owner, until, except, lapsedBefore, ownLapsedBefore, limit })
  // The rows of an UPDATE come in no order.
  return [...rows]
    .sort((one, other) => one.seq - other.seq)
    .map(({ seq, id, accountId, fence, key, startedAt, ...call }) => ({
      ...call,
      ref: { seq, id, accountId, owner, fence },
      isKeyed: key !== null,
      startedAt: startedAt ?? new Date(0),
    }))
}

const IS_RUNNING = query(
  'calls.isRunning',
  pick(routerCall, 'seq'),
  `SELECT seq FROM router_call WHERE seq = :seq AND id = :id AND state = 'running'`,
)

export function* isCallRunning({ seq, id }: { readonly seq: number; readonly id: string }): Steps<boolean> {
  return (yield* get(IS_RUNNING, { seq, id })) !== undefined
}

const KEEP_PROGRESS = command(
  'calls.keepProgress',
  `UPDATE router_call SET progress = :progress, task = :task WHERE ${IS_HELD}`,
)

/** False when the call has ended or is another node's. */
export function* keepProgress(call: HeldCall, progress: CallProgress): Steps<boolean> {
  const kept = { progress: JSON.stringify(progress), task: progress.told?.task ?? null }
  return (yield* run(KEEP_PROGRESS, { ...toHeld(call), ...kept })) === 1
}

// Of an attempt that has a handle nothing is left behind. The second form is that of a write whose answer was lost.
const BEGIN_ATTEMPT = command(
  'calls.beginAttempt',
  (words) => `UPDATE router_call SET plan = :plan, attempt_index = :attemptIndex, sent = ${words.either('0', 'false')}
    WHERE ${IS_HELD} AND progress IS NULL AND attempt_index IN (:attemptIndex - 1, :attemptIndex)`,
)
const atAttempt = pick(routerCall, 'plan', 'attemptIndex')

/** False when the call has ended, is another node's, or is at another attempt. */
export function* beginAttempt(call: HeldCall, at: Parameters<CallStore['beginAttempt']>[1]): Steps<boolean> {
  return (yield* run(BEGIN_ATTEMPT, { ...toHeld(call), ...encode(atAttempt, at) })) === 1
}

const MARK_SENT = command('calls.markSent', `UPDATE router_call SET sent = :isSent WHERE ${IS_HELD}`)

/** Whether the call may have reached its provider; false when it is not this node's any more, and nothing was written. */
export function* markSent(call: HeldCall, isSent: boolean): Steps<boolean> {
  return (yield* run(MARK_SENT, { ...toHeld(call), isSent })) === 1
}

const told = pick(routerCall, 'id', 'modelId', 'progress')
/** A provider that gives the same name twice means the newer task. */
const findToldBy = (column: 'key' | 'task') =>
  query(
    `calls.toldBy.${column}`,
    told,
    `SELECT ${told.columns} FROM router_call
     WHERE account_id = :accountId AND ${column} = :value AND task IS NOT NULL AND progress IS NOT NULL
     ORDER BY seq DESC LIMIT 1`,
  )
const TOLD_BY_KEY = findToldBy('key')
const TOLD_BY_TASK = findToldBy('task')

export function* findTold(accountId: string, asked: ToldQuery): Steps<ToldCall | null> {
  const found = yield* 'key' in asked
    ? get(TOLD_BY_KEY, { accountId, value: asked.key })
    : get(TOLD_BY_TASK, { accountId, value: asked.task })
  const task = found?.progress?.told
  if (found === undefined || task === undefined) return null
  return { id: found.id, modelId: found.modelId, told: task, isOwnKey: found.progress?.isOwnKey === true }
}

const listed = shape({
  ...pick(routerCall, 'seq', 'id', 'modelId', 'isQueued', 'createdAt', 'jobId').fields,
  ...pick(routerResult, 'costMicros', 'refusal').fields,
  finishedAt: { ...pick(routerResult, 'replayUntil').fields.replayUntil },
  status: text<CallStatus>(),
})
const STATUS = `CASE state WHEN 'waiting' THEN 'queued' WHEN 'done' THEN CASE WHEN refusal IS NULL THEN 'succeeded' ELSE 'failed' END
  WHEN 'unusable' THEN CASE WHEN refusal IS NULL THEN 'succeeded' ELSE 'failed' END ELSE state END`
/** Newest first. A filter walks the calls of the account, which are kept for a day. */
const LIST = query(
  'calls.list',
  listed,
  `SELECT router_call.seq, id, model, ${STATUS} AS status, queued, created_at, finished_at, cost_micros, refusal, job_id
   FROM router_call LEFT JOIN router_result ON router_result.seq = router_call.seq
   WHERE router_call.account_id = :accountId AND router_call.seq < :before
     AND (CAST(:modelId AS text) IS NULL OR model = :modelId) AND (CAST(:status AS text) IS NULL OR ${STATUS} = :status)
   ORDER BY router_call.seq DESC LIMIT :limit`,
)

export function* listCalls(accountId: string, { before, ...filter }: CallListQuery): Steps<ListedCall[]> {
  return yield* all(LIST, { accountId, before: before ?? Number.MAX_SAFE_INTEGER, ...filter })
}

const due = pick(routerCall, 'seq', 'isQueued', 'state')
const DUE = query(
  'calls.due',
  due,
  (words) => `SELECT ${due.columns} FROM router_call
    WHERE expires_at <= :now AND state NOT IN ('running', 'waiting') ORDER BY expires_at LIMIT :limit
    ${words.either('', 'FOR UPDATE SKIP LOCKED')}`,
)
const BURY = command(
  'calls.bury',
  (words) => `UPDATE router_call SET state = 'gone', key = NULL, progress = NULL, expires_at = :expiresAt
    WHERE ${words.isIn('seq', ':seqs')}`,
)
/** How long the id of a queued call is known after its result is gone, so that its owner gets 410 instead of 404. */
const TOMBSTONE_MS = 7 * 24 * 60 * 60 * 1000

/** Removes records past their life; returns how many it found. */
export function* sweepCalls(now: Date, limit: number): Steps<number> {
  const found = yield* all(DUE, { now, limit })
  const { buried = [], gone = [] } = Object.groupBy(found, ({ isQueued, state }) =>
    isQueued && state !== 'gone' ? 'buried' : 'gone',
  )
  const seqs = buried.map(({ seq }) => seq)
  if (seqs.length > 0) yield* run(BURY, { seqs, expiresAt: new Date(now.getTime() + TOMBSTONE_MS) })
  yield* removeResults(seqs, now)
  yield* removeCalls(
    gone.map(({ seq }) => seq),
    now,
  )
  return found.length
}
