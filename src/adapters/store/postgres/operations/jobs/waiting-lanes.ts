/** The lanes of a pool's queue: found by stepping from one to the next through the index, never by walking the jobs in them. */
import type { LanePlace, OutwaitedQuery, WaitingLane } from '../../../../../domain/jobs/job-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'

// An answer stays small; the caller asks again for the rest.
const MAX_FOUND = 100
const BEGINNING: LanePlace = { pool: '', lane: '' }

const firstOf = (condition: string) => `
  SELECT pool, needs, id, expires_at FROM job WHERE status = 'queued' ${condition} ORDER BY pool, needs LIMIT 1`

// Jobs without a lane are a step like any other, and left out at the end.
const FIND = statement<[pool: string, lane: string, workflow: string]>(
  'lanes.find',
  `WITH RECURSIVE lane AS (
     (${firstOf('AND (pool, needs) > ($2, $3)')})
     UNION ALL
     SELECT further.* FROM lane CROSS JOIN LATERAL (
       ${firstOf('AND (pool, needs) > (lane.pool, lane.needs)')}) AS further)
   SELECT lane.pool, lane.needs, job_text.workflow FROM lane CROSS JOIN LATERAL (
     SELECT workflow FROM job_text WHERE job_id = lane.id AND expires_at = lane.expires_at OFFSET 0) AS job_text
   WHERE lane.needs <> '' AND lane.needs <> ALL($1::text[]) LIMIT ${MAX_FOUND}`,
)

export async function findLanes(
  db: Queryable,
  known: readonly string[],
  { pool, lane }: LanePlace = BEGINNING,
): Promise<WaitingLane[]> {
  return (await db.all(FIND, [known, pool, lane])).map(([pool, lane, workflow]) => ({ pool, lane, workflow }))
}

// Each step is short, so that claims never wait for it long; a job that somebody is taking or ending just now is left out.
const STEP = 5000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

const JOIN = statement<[changed: number, lastId: string | null]>(
  'lanes.join',
  `WITH part AS MATERIALIZED (
     SELECT id, status, needs FROM job WHERE id > $2 ORDER BY id LIMIT ${STEP}),
   found AS MATERIALIZED (
     SELECT job.id FROM job JOIN part USING (id) WHERE job.status = 'queued' AND job.needs = ''
     ORDER BY job.id FOR UPDATE OF job SKIP LOCKED),
   joined AS (UPDATE job SET needs = $1 FROM found WHERE job.id = found.id RETURNING 1)
   SELECT (SELECT count(*) FROM joined), (SELECT id FROM part ORDER BY id DESC LIMIT 1)`,
)

/** Runs once when a fleet starts, for the jobs that were accepted without a lane. */
export async function joinLane(db: Queryable, lane: string): Promise<number> {
  let joined = 0
  for (let after: string | null = FIRST_ID; after !== null; ) {
    const [changed, lastId]: readonly [number, string | null] = (await db.get(JOIN, [lane, after])) ?? [0, null]
    joined += changed
    after = lastId
  }
  return joined
}

const MAX_WAITING = 1000

const firstWaiting = (lane: string, condition: string) => `
  SELECT account_id FROM job
  WHERE status = 'queued' AND pool = $2 AND needs = ${lane}.needs AND expires_at > $3 ${condition}
  ORDER BY account_id LIMIT 1`

const laneBehind = (condition: string) => `
  SELECT needs FROM job WHERE status = 'queued' AND pool = $2 ${condition} ORDER BY needs LIMIT 1`

// The accounts that wait in a lane are found by stepping from one to the next: jobs of other lanes are never walked.
const findOutwaitedIn = (lanes: string) => `
  WITH RECURSIVE lane AS (${lanes}),
  waiting AS (
    SELECT lane.needs, first.account_id, 1 AS depth
    FROM lane CROSS JOIN LATERAL (${firstWaiting('lane', '')}) AS first
    UNION ALL
    SELECT waiting.needs, further.account_id, waiting.depth + 1 FROM waiting CROSS JOIN LATERAL (
      ${firstWaiting('waiting', 'AND account_id > waiting.account_id')}) AS further WHERE waiting.depth < ${MAX_WAITING})
  SELECT holder.account_id FROM account_load AS holder WHERE holder.account_id = ANY($1::text[]) AND EXISTS (
    SELECT 1 FROM waiting CROSS JOIN LATERAL (
      SELECT running, max_running FROM account_load WHERE account_id = waiting.account_id OFFSET 0) AS other
    WHERE waiting.account_id <> holder.account_id AND other.running < least(other.max_running, greatest(1, holder.running - 1)))`

const FIND_OUTWAITED = statement<[accountId: string]>(
  'lanes.find_outwaited',
  findOutwaitedIn(`
    (${laneBehind('')})
    UNION ALL
    SELECT further.needs FROM lane CROSS JOIN LATERAL (${laneBehind('AND needs > lane.needs')}) AS further`),
)
const FIND_OUTWAITED_IN_LANES = statement<[accountId: string]>(
  'lanes.find_outwaited_in',
  findOutwaitedIn('SELECT DISTINCT needs FROM unnest($4::text[]) AS needs'),
)

export async function findOutwaited(
  db: Queryable,
  { accountIds, pool, now, lanes }: OutwaitedQuery,
): Promise<string[]> {
  if (lanes?.length === 0) return []
  const values = [accountIds, pool, now.getTime()]
  const rows = await (lanes === null
    ? db.all(FIND_OUTWAITED, values)
    : db.all(FIND_OUTWAITED_IN_LANES, [...values, lanes]))
  return rows.map(([accountId]) => accountId)
}
