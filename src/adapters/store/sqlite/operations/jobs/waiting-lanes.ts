/** The lanes of a pool's queue: found by stepping from one to the next through the index, never by walking the jobs in them. */
import type { DatabaseSync } from 'node:sqlite'
import type { LanePlace, WaitingLane } from '../../../../../domain/jobs/job-store.ts'
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
