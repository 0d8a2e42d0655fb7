/** The lanes of a pool's queue: found by stepping from one to the next through the index, never by walking the jobs in them. */
import type { DatabaseSync } from 'node:sqlite'
import type { WaitingLane } from '../../../../../domain/jobs/job-store.ts'
import { prepareRows } from '../statement.ts'

// An answer stays small; the caller asks again for the rest.
const MAX_FOUND = 100

const firstOf = (condition: string, order: string) => `
  (SELECT next.seq FROM job AS next INDEXED BY job_lane
   WHERE next.status = 'queued' AND next.needs <> '' AND ${condition}
   ORDER BY ${order} next.account_id, next.priority DESC, next.seq LIMIT 1)`

const FIND = `
  WITH RECURSIVE lane(seq, pool, needs) AS (
    SELECT seq, pool, needs FROM job WHERE seq = ${firstOf("next.pool >= ''", 'next.pool, next.needs,')}
    UNION ALL
    SELECT job.seq, job.pool, job.needs FROM lane CROSS JOIN job WHERE job.seq = coalesce(
      ${firstOf('next.pool = lane.pool AND next.needs > lane.needs', 'next.needs,')},
      ${firstOf('next.pool > lane.pool', 'next.pool, next.needs,')}))
  SELECT pool, needs, text FROM lane CROSS JOIN job_workflow USING (seq)
  WHERE needs NOT IN (SELECT value FROM json_each(?1)) LIMIT ${MAX_FOUND}`

export function prepareFindLanes(database: DatabaseSync): (known: readonly string[]) => WaitingLane[] {
  const select = prepareRows<[pool: string, lane: string, workflow: string]>(database, FIND)
  return (known) => select.all(JSON.stringify(known)).map(([pool, lane, workflow]) => ({ pool, lane, workflow }))
}

/** Runs once when a fleet starts, for the jobs that were accepted without a lane. */
export function prepareJoinLane(database: DatabaseSync): (lane: string) => number {
  const update = database.prepare(`
    UPDATE job SET needs = ?1 WHERE needs = '' AND seq IN (
      SELECT job.seq FROM account CROSS JOIN job
      WHERE account.queued > 0 AND job.status = 'queued' AND job.account_id = account.id)`)
  return (lane) => Number(update.run(lane).changes)
}
