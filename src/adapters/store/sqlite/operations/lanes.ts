/** The lanes of a pool's queue: found by stepping from one to the next through the index, never by walking the jobs in them. */
import type { DatabaseSync } from 'node:sqlite'
import type { WaitingLane } from '../../../../domain/jobs/job-store.ts'
import { prepareRows } from './statement.ts'

export interface FindLanesInput {
  readonly pool: string
  readonly known: readonly string[]
}

export interface JoinLaneInput {
  readonly pool: string
  readonly lane: string
}

// One answer stays small; whoever asks comes back for the rest.
const MAX_FOUND = 100

const firstOf = (condition: string) => `
  SELECT seq FROM job INDEXED BY job_lane WHERE status = 'queued' AND needs <> '' AND pool = ?1 AND ${condition}
  ORDER BY needs, account_id, priority DESC, seq LIMIT 1`

const FIND = `
  WITH RECURSIVE lane(seq, needs) AS (
    SELECT seq, needs FROM job WHERE seq = (${firstOf("needs > ''")})
    UNION ALL
    SELECT job.seq, job.needs FROM lane CROSS JOIN job WHERE job.seq = (${firstOf('needs > lane.needs')}))
  SELECT needs, text FROM lane CROSS JOIN job_workflow USING (seq)
  WHERE needs NOT IN (SELECT value FROM json_each(?2)) LIMIT ${MAX_FOUND}`

export function prepareFindLanes(database: DatabaseSync): (input: FindLanesInput) => WaitingLane[] {
  const select = prepareRows<[lane: string, workflow: string]>(database, FIND)
  return ({ pool, known }) => select.all(pool, JSON.stringify(known)).map(([lane, workflow]) => ({ lane, workflow }))
}

/** Once per start of a fleet, over whatever was accepted without one. */
export function prepareJoinLane(database: DatabaseSync): (input: JoinLaneInput) => number {
  const update = database.prepare(`
    UPDATE job SET needs = ?2 WHERE needs = '' AND seq IN (
      SELECT job.seq FROM account CROSS JOIN job
      WHERE account.queued > 0 AND job.status = 'queued' AND job.account_id = account.id AND job.pool = ?1)`)
  return ({ pool, lane }) => Number(update.run(pool, lane).changes)
}
