/** The lanes of a pool's queue: found by stepping from one to the next through the index, never by walking the jobs in them. */
import type { LanePlace, OutwaitedQuery, WaitingLane } from '../../../../domain/jobs/job-store.ts'
import { HELD_LIMIT } from '../../rows/jobs/job.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { both, command, postgresOnly, query, sqliteOnly } from '../../statements/statement.ts'
import { integer, nullable, shape, text } from '../../tables/table.ts'
import { FIND_PAUSED, PAUSED_ACCOUNTS, pausedNames } from './queue-pauses.ts'

// An answer stays small; the caller asks again for the rest.
const MAX_FOUND = 100
const BEGINNING: LanePlace = { pool: '', lane: '' }

const firstInIndex = (condition: string, order: string) => `
  (SELECT next.seq FROM job AS next INDEXED BY job_lane WHERE next.status = 'queued' AND next.needs <> '' AND ${condition}
   ORDER BY ${order} next.account_id, next.priority DESC, next.seq LIMIT 1)`
const firstBehind = (pool: string, lane: string) => `coalesce(
  ${firstInIndex(`next.pool = ${pool} AND next.needs > ${lane}`, 'next.needs,')},
  ${firstInIndex(`next.pool > ${pool}`, 'next.pool, next.needs,')})`
const firstOf = (condition: string) => `
  SELECT pool, needs, id, expires_at FROM job WHERE status = 'queued' AND ${condition} ORDER BY pool, needs LIMIT 1`

// Jobs without a lane are a step like any other, and left out at the end.
const FIND = query(
  'lanes.find',
  shape({ pool: text(), lane: text(), workflow: text() }),
  both({
    sqlite: `
      WITH RECURSIVE lane(seq, pool, needs) AS (
        SELECT seq, pool, needs FROM job WHERE seq = ${firstBehind(':pool', ':lane')}
        UNION ALL
        SELECT job.seq, job.pool, job.needs FROM lane CROSS JOIN job WHERE job.seq = ${firstBehind('lane.pool', 'lane.needs')})
      SELECT pool, needs AS lane, text AS workflow FROM lane CROSS JOIN job_workflow USING (seq)
      WHERE needs NOT IN (SELECT value FROM json_each(:known)) LIMIT ${MAX_FOUND}`,
    postgres: `
      WITH RECURSIVE lane AS (
        (${firstOf('(pool, needs) > (:pool, :lane)')})
        UNION ALL
        SELECT further.* FROM lane CROSS JOIN LATERAL (${firstOf('(pool, needs) > (lane.pool, lane.needs)')}) AS further)
      SELECT lane.pool, lane.needs AS lane, job_text.workflow FROM lane CROSS JOIN LATERAL (
        SELECT workflow FROM job_text WHERE job_id = lane.id AND expires_at = lane.expires_at OFFSET 0) AS job_text
      WHERE lane.needs <> '' AND lane.needs <> ALL(:known::text[]) LIMIT ${MAX_FOUND}`,
  }),
)

export function* findLanes(known: readonly string[], { pool, lane } = BEGINNING): Steps<WaitingLane[]> {
  return yield* all(FIND, { known, pool, lane })
}

const JOIN_ALL = command(
  'lanes.joinAll',
  sqliteOnly(`
    UPDATE job SET needs = :lane WHERE needs = '' AND seq IN (
      SELECT job.seq FROM account CROSS JOIN job
      WHERE account.queued > 0 AND job.status = 'queued' AND job.account_id = account.id)`),
)
// Each step is short, so that claims never wait for it long; a job that somebody is taking or ending just now is left out.
const STEP = 5000
const FIRST_ID = '00000000-0000-0000-0000-000000000000'
const JOIN_SOME = query(
  'lanes.join',
  shape({ joined: integer(), lastId: nullable(text()) }),
  postgresOnly(`
    WITH part AS MATERIALIZED (SELECT id, status, needs FROM job WHERE id > :after ORDER BY id LIMIT ${STEP}),
    found AS MATERIALIZED (
      SELECT job.id FROM job JOIN part USING (id) WHERE job.status = 'queued' AND job.needs = ''
      ORDER BY job.id FOR UPDATE OF job SKIP LOCKED),
    joined AS (UPDATE job SET needs = :lane FROM found WHERE job.id = found.id RETURNING 1)
    SELECT (SELECT count(*) FROM joined) AS joined, (SELECT id FROM part ORDER BY id DESC LIMIT 1) AS last_id`),
)

/** Runs once when a fleet starts, for the jobs that were accepted without a lane. */
export function* joinLane(lane: string): Steps<number> {
  let joined = yield* run(JOIN_ALL, { lane })
  for (let after: string | null = FIRST_ID; after !== null; ) {
    const step: { joined: number; lastId: string | null } | undefined = yield* get(JOIN_SOME, { lane, after })
    joined += step?.joined ?? 0
    after = step?.lastId ?? null
  }
  return joined
}

const MAX_WAITING = 1000

const firstWaiting = (lane: string, condition: string) => `
  SELECT account_id, priority FROM job
  WHERE status = 'queued' AND pool = :pool AND needs = ${lane}.needs AND expires_at > :now
    AND account_id NOT IN (${PAUSED_ACCOUNTS}) ${condition}
  ORDER BY account_id, priority DESC, seq LIMIT 1`
const laneBehind = (condition: string) => `
  SELECT needs FROM job WHERE status = 'queued' AND pool = :pool ${condition} ORDER BY needs LIMIT 1`

/** Accounts that wait are found by stepping from one to the next: jobs of other lanes are never walked. */
function outwaited(name: string, isOfLanes: boolean) {
  const waits = isOfLanes ? `needs <> '' AND needs IN (SELECT value FROM json_each(:lanes))` : ':lanes IS NULL'
  const lanes = isOfLanes
    ? 'SELECT DISTINCT needs FROM unnest(:lanes::text[]) AS needs'
    : `(${laneBehind('')})
       UNION ALL
       SELECT further.needs FROM lane CROSS JOIN LATERAL (${laneBehind('AND needs > lane.needs')}) AS further`
  return query(
    name,
    shape({ accountId: text() }),
    both({
      sqlite: `
        SELECT holder.id AS account_id FROM account AS holder WHERE holder.id IN (SELECT value FROM json_each(:accountIds)) AND EXISTS (
          SELECT 1 FROM account AS other INDEXED BY account_waiting
          WHERE other.queued > 0 AND other.running < max(1, holder.running - 1) AND other.running < other.max_running
            AND other.id <> holder.id AND EXISTS (
              SELECT 1 FROM job
              WHERE status = 'queued' AND account_id = other.id AND pool = :pool AND expires_at > :now AND priority > ${HELD_LIMIT}
                AND ${waits}) AND other.id NOT IN (${PAUSED_ACCOUNTS}))`,
      postgres: `
        WITH RECURSIVE lane AS (${lanes}),
        waiting AS (
          SELECT lane.needs, first.account_id, first.priority, 1 AS depth
          FROM lane CROSS JOIN LATERAL (${firstWaiting('lane', '')}) AS first
          UNION ALL
          SELECT waiting.needs, further.account_id, further.priority, waiting.depth + 1 FROM waiting CROSS JOIN LATERAL (
            ${firstWaiting('waiting', 'AND account_id > waiting.account_id')}) AS further WHERE waiting.depth < ${MAX_WAITING})
        SELECT holder.account_id FROM account_load AS holder WHERE holder.account_id = ANY(:accountIds::text[]) AND EXISTS (
          SELECT 1 FROM waiting CROSS JOIN LATERAL (
            SELECT running, max_running FROM account_load WHERE account_id = waiting.account_id OFFSET 0) AS other
          WHERE waiting.account_id <> holder.account_id AND waiting.priority > ${HELD_LIMIT}
            AND other.running < least(other.max_running, greatest(1, holder.running - 1)))`,
    }),
  )
}

const FIND_OUTWAITED = outwaited('lanes.find_outwaited', false)
const FIND_OUTWAITED_IN_LANES = outwaited('lanes.find_outwaited_in', true)

export function* findOutwaited({ accountIds, pool, now, lanes }: OutwaitedQuery): Steps<string[]> {
  if (lanes?.length === 0 || (yield* get(FIND_PAUSED, pausedNames(pool))) !== undefined) return []
  const rows = yield* lanes === null
    ? all(FIND_OUTWAITED, { accountIds, pool, now, lanes })
    : all(FIND_OUTWAITED_IN_LANES, { accountIds, pool, now, lanes })
  return rows.map(({ accountId }) => accountId)
}
