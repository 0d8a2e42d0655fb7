/** The lanes of a pool's queue: found by stepping from one to the next through the index, never by walking the jobs in them. */
import type { DatabaseSync } from 'node:sqlite'
import type { LanePlace, OutwaitedQuery, WaitingLane } from '../../../../../domain/jobs/job-store.ts'
import { prepareRows } from '../statement.ts'

// An answer stays small; the caller asks again for the rest.
const MAX_FOUND = 100

const firstOf = (condition: string, order: string) => `
  (SELECT next.seq FROM job AS next INDEXED BY job_lane
   WHERE next.status = 'queued' AND next.needs <> '' AND ${condition}
   ORDER BY ${order} next.account_id, next.priority DESC, next.seq LIMIT 1)`

const firstBehind = (pool: string, lane: string) => `coalesce(
  ${firstOf(`next.pool = ${pool} AND next.needs > ${lane}`, 'next.needs,')},
  ${firstOf(`next.pool > ${pool}`, 'next.pool, next.needs,')})`

const FIND = `
  WITH RECURSIVE lane(seq, pool, needs) AS (
    SELECT seq, pool, needs FROM job WHERE seq = ${firstBehind('?2', '?3')}
    UNION ALL
    SELECT job.seq, job.pool, job.needs FROM lane CROSS JOIN job WHERE job.seq = ${firstBehind('lane.pool', 'lane.needs')})
  SELECT pool, needs, text FROM lane CROSS JOIN job_workflow USING (seq)
  WHERE needs NOT IN (SELECT value FROM json_each(?1)) LIMIT ${MAX_FOUND}`

interface LaneQuery {
  readonly known: readonly string[]
  readonly after: LanePlace
}

export function prepareFindLanes(database: DatabaseSync): (query: LaneQuery) => WaitingLane[] {
  const select = prepareRows<[pool: string, lane: string, workflow: string]>(database, FIND)
  return ({ known, after }) => {
    const rows = select.all(JSON.stringify(known), after.pool, after.lane)
    return rows.map(([pool, lane, workflow]) => ({ pool, lane, workflow }))
  }
}

/** Runs once when a fleet starts, for the jobs that were accepted without a lane. */
export function prepareJoinLane(database: DatabaseSync): (lane: string) => number {
  const update = database.prepare(`
    UPDATE job SET needs = ?1 WHERE needs = '' AND seq IN (
      SELECT job.seq FROM account CROSS JOIN job
      WHERE account.queued > 0 AND job.status = 'queued' AND job.account_id = account.id)`)
  return (lane) => Number(update.run(lane).changes)
}

interface OutwaitedInput extends Omit<OutwaitedQuery, 'now'> {
  readonly now: number
}

const outwaited = (waits: string) => `
  SELECT holder.id FROM account AS holder WHERE holder.id IN (SELECT value FROM json_each(?1)) AND EXISTS (
    SELECT 1 FROM account AS other INDEXED BY account_waiting
    WHERE other.queued > 0 AND other.running < max(1, holder.running - 1) AND other.running < other.max_running
      AND other.id <> holder.id AND EXISTS (
        SELECT 1 FROM job
        WHERE status = 'queued' AND account_id = other.id AND pool = ?2 AND expires_at > ?3 AND ${waits}))`

export function prepareFindOutwaited(database: DatabaseSync): (input: OutwaitedInput) => string[] {
  const byAny = prepareRows<[string]>(database, outwaited('?4 IS NULL'))
  const byLane = prepareRows<[string]>(
    database,
    outwaited(`needs <> '' AND needs IN (SELECT value FROM json_each(?4))`),
  )
  return ({ pool, now, lanes, accountIds }) => {
    const rows = (lanes === null ? byAny : byLane).all(
      JSON.stringify(accountIds),
      pool,
      now,
      lanes === null ? null : JSON.stringify(lanes),
    )
    return rows.map(([id]) => id)
  }
}
