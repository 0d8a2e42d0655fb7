/** The progress of running calls, which lets another process go on with them, and the end of records past their life. */
import type { CallProgress, HeldCall, ToldCall, ToldQuery } from '../../../../../domain/models/calls/call-store.ts'
import { TOMBSTONE_MS } from '../../../call-records.ts'
import { type ToldRow, toldSql, toToldCall } from '../../../rows/told-rows.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { removeCalls } from './call-key.ts'
import { removeResults } from './call-result.ts'

const KEEP_PROGRESS = statement(
  'calls.keep-progress',
  `UPDATE router_call SET progress = $5, task = $6
   WHERE seq = $1 AND id = $2 AND state = 'running' AND owner = $3 AND fence = $4`,
)

/** False when the call has ended or is another node's. */
export async function keepProgress(
  db: Queryable,
  { seq, id, owner, fence }: HeldCall,
  progress: CallProgress,
): Promise<boolean> {
  return (
    (await db.run(KEEP_PROGRESS, [seq, id, owner, fence, JSON.stringify(progress), progress.told?.task ?? null])) === 1
  )
}

const TOLD_BY_KEY = statement<ToldRow>('calls.told-by-key', toldSql({ by: 'key', account: '$1', value: '$2' }))
const TOLD_BY_TASK = statement<ToldRow>('calls.told-by-task', toldSql({ by: 'task', account: '$1', value: '$2' }))

export async function findTold(db: Queryable, accountId: string, query: ToldQuery): Promise<ToldCall | null> {
  return toToldCall(
    'key' in query
      ? await db.get(TOLD_BY_KEY, [accountId, query.key])
      : await db.get(TOLD_BY_TASK, [accountId, query.task]),
  )
}

const DUE = statement<[seq: number, isQueued: boolean, state: string]>(
  'calls.due',
  `SELECT seq, queued, state FROM router_call
   WHERE expires_at <= $1 AND state NOT IN ('running', 'waiting') ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
)
const BURY = statement(
  'calls.bury',
  `UPDATE router_call SET state = 'gone', key = NULL, progress = NULL, expires_at = $2 WHERE seq = ANY($1::bigint[])`,
)

/** Removes records past their life; returns how many it found. */
export async function sweepCalls(tx: Queryable, now: number, limit: number): Promise<number> {
  const due = await tx.all(DUE, [now, limit])
  const isBuried = ([, isQueued, state]: (typeof due)[number]) => isQueued && state !== 'gone'
  const buried = due.filter(isBuried).map(([seq]) => seq)
  if (buried.length > 0) await tx.run(BURY, [buried, now + TOMBSTONE_MS])
  await removeResults(tx, buried, now)
  const gone = due.filter((row) => !isBuried(row)).map(([seq]) => seq)
  await removeCalls(tx, gone, now)
  return due.length
}
