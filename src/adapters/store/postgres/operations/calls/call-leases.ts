/**
 * Leases of running calls: renewed in one statement, given up, taken over when they have lapsed. No lease lapses before the
 * server's own time says so, whatever time the caller believes in.
 */
import { readKeptTrace } from '../../../../../../lib/tracing/trace-context.ts'
import type {
  CallProgress,
  CallRef,
  CallStore,
  HeldCall,
  UnfinishedCall,
} from '../../../../../domain/models/calls/call-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const HELD = `SELECT seq FROM router_call JOIN unnest($1::bigint[], $2::text[], $3::bigint[]) AS held(seq, owner, fence)
  USING (seq, owner, fence) WHERE state = 'running' ORDER BY seq FOR NO KEY UPDATE OF router_call`

const RENEW = statement<[id: string, isStopAsked: boolean]>(
  'calls.renew',
  `WITH mine AS MATERIALIZED (${HELD})
   UPDATE router_call SET lease_until = $4 FROM mine WHERE router_call.seq = mine.seq
   RETURNING router_call.id, router_call.stop_asked`,
)
const RELEASE = statement(
  'calls.release',
  `WITH mine AS MATERIALIZED (${HELD})
   UPDATE router_call SET owner = NULL, lease_until = 0 FROM mine WHERE router_call.seq = mine.seq`,
)

function toColumns(calls: readonly HeldCall[]) {
  return [calls.map(({ seq }) => seq), calls.map(({ owner }) => owner), calls.map(({ fence }) => fence)]
}

export async function renewCalls(db: Queryable, calls: readonly HeldCall[], until: Date) {
  const rows = await db.all(RENEW, [...toColumns(calls), until.getTime()])
  return rows.map(([id, isStopAsked]) => ({ id, isStopAsked }))
}

export async function releaseCalls(db: Queryable, calls: readonly HeldCall[]): Promise<void> {
  await db.run(RELEASE, toColumns(calls))
}

type TakenRow = [
  seq: number,
  id: string,
  accountId: string,
  fence: number,
  key: string | null,
  isQueued: boolean,
  model: string,
  baseUrl: string,
  startedAt: number,
  progress: string | null,
  isSent: boolean,
  isStopAsked: boolean,
  losses: number,
  trace: string | null,
]

const NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

const TAKEN_COLUMNS =
  'seq, id, account_id, fence, key, queued, model, base_url, started_at, progress, sent, stop_asked, losses, trace'

// No two takes of a process have the same end of their lease, so it tells what an earlier try of the same take has taken.
const FIND_TAKEN = statement<TakenRow>(
  'calls.find-taken-over',
  `SELECT ${TAKEN_COLUMNS} FROM router_call
   WHERE state = 'running' AND owner = $1 AND lease_until = $2 AND seq <> ALL ($3::bigint[]) ORDER BY seq`,
)

// Volatile, so as a step of its own: it is asked once, and not for every row.
const TAKE = statement<TakenRow>(
  'calls.take-lapsed',
  `WITH time AS MATERIALIZED (
     SELECT least($2::bigint, ${NOW}) AS others, least($3::bigint, ${NOW}) AS own),
   lapsed AS MATERIALIZED (
     SELECT seq FROM router_call, time
     WHERE state = 'running' AND (owner IS NULL OR (owner <> $1 AND lease_until < time.others)
       OR (owner = $1 AND lease_until < time.own AND seq <> ALL ($4::bigint[])))
     ORDER BY seq LIMIT $6 FOR UPDATE OF router_call SKIP LOCKED),
   taken AS (
     UPDATE router_call SET owner = $1, lease_until = $5, fence = fence + 1 FROM lapsed
     WHERE router_call.seq = lapsed.seq RETURNING router_call.*)
   SELECT ${TAKEN_COLUMNS} FROM taken ORDER BY seq`,
)

export async function takeLapsedCalls(
  db: Queryable,
  options: Parameters<CallStore['takeLapsed']>[0],
  isAgain: boolean,
): Promise<UnfinishedCall[]> {
  const { owner, until } = options.lease
  const { lapsedBefore, ownLapsedBefore, except, limit } = options
  const times = [lapsedBefore.getTime(), ownLapsedBefore.getTime()]
  const known = except.map(({ seq }) => seq)
  const earlier = isAgain ? await db.all(FIND_TAKEN, [owner, until.getTime(), known]) : []
  const rows = earlier.length > 0 ? earlier : await db.all(TAKE, [owner, ...times, known, until.getTime(), limit])
  return rows.map((row) => toUnfinishedCall(owner, row))
}

function toUnfinishedCall(owner: string, row: TakenRow): UnfinishedCall {
  const [seq, id, accountId, fence, key, isQueued, modelId, baseUrl, startedAt, progress, ...flags] = row
  const [isSent, isStopAsked, losses, trace] = flags
  return {
    ref: { seq, id, accountId, owner, fence },
    modelId,
    baseUrl,
    progress: progress === null ? null : (JSON.parse(progress) as CallProgress),
    isQueued,
    isKeyed: key !== null,
    startedAt: new Date(startedAt),
    isSent,
    isStopAsked,
    losses,
    trace: readKeptTrace(trace),
  }
}

const IS_RUNNING = statement<[number]>(
  'calls.is-running',
  `SELECT 1 FROM router_call WHERE seq = $1 AND id = $2 AND state = 'running'`,
)

export async function isCallRunning(db: Queryable, { seq, id }: CallRef): Promise<boolean> {
  return (await db.get(IS_RUNNING, [seq, id])) !== undefined
}

const MARK = statement(
  'calls.mark-sent',
  `UPDATE router_call SET sent = $5 WHERE seq = $1 AND id = $2 AND state = 'running' AND owner = $3 AND fence = $4`,
)

/** Whether the call may have reached its provider; false when it is not this node's any more, and nothing was written. */
export async function markSent(db: Queryable, { seq, id, owner, fence }: HeldCall, isSent: boolean): Promise<boolean> {
  return (await db.run(MARK, [seq, id, owner, fence, isSent])) === 1
}
