/**
 * Claim: one statement finds the best candidate and takes it, and a second counts it for its account. It looks at the head of each
 * waiting queue and at nothing behind it, so a backlog costs nothing. Where every engine runs everything the queues are the accounts;
 * else they are the lanes, and the statement matches their heads with what the engines offer to take.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { EngineOffer } from '../../../../../domain/engine/fleet/lane-offers.ts'
import type { Claim, ClaimRequest, ReturnedLease, TouchedJob } from '../../../../../domain/jobs/job-store.ts'
import { mustMove } from '../../../../../domain/jobs/transitions.ts'
import { type ClaimedRow, claimedRow, toClaim } from '../../../rows/jobs/claimed-job.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, HELD_LIMIT } from '../../../rows/jobs/job.ts'
import { command, query, sqliteOnly, toRows } from '../../../statements/statement.ts'
import { FLOOR, UNKNOWN_RUN_MS } from '../../../stores/jobs/fair-share.ts'
import { readOutputs } from '../../../stores/jobs/find-job.ts'
import { releaseLeases } from '../../../stores/jobs/leases.ts'
import { FIND_PAUSED, PAUSED_ACCOUNTS, pausedNames } from '../../../stores/jobs/queue-pauses.ts'
import { jobRow } from '../../../tables/jobs.ts'
import { integer, shape, text } from '../../../tables/table.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'

mustMove('queued', 'running')

// What an earlier attempt showed is replaced by what this one makes.
const HOLD = `status = 'running', started_at = :now, lease_id = :leaseId, lease_until = :leaseUntil, worker_id = :workerId,
  attempt = attempt + 1, version = version + 1,
  outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0`

/** With everything that its run needs; what lies beside it is read only where the job's flags say that there is something. */
const CLAIMED = `${jobRow.columns}, lease_id, run_id, needs, engine_id, engine_losses, needs_extra_data AS extra_data_flags,
  (SELECT text FROM job_workflow WHERE seq = job.seq) AS workflow,
  iif(needs_extra_data & ${HAS_TRACE}, (SELECT origin FROM job_workflow WHERE seq = job.seq), NULL) AS origin,
  iif(needs_extra_data & ${HAS_CREDENTIALS}, (SELECT sealed FROM job_secret WHERE seq = job.seq), NULL) AS sealed,
  iif(needs_extra_data & ${HAS_NOTES}, (SELECT text FROM job_notes WHERE seq = job.seq), NULL) AS notes,
  iif(input_count > 0, (
    SELECT json_group_array(json_object('name', name, 'hash', hash, 'sizeBytes', size_bytes, 'contentType', content_type))
    FROM (SELECT * FROM job_input WHERE seq = job.seq ORDER BY position)), NULL) AS inputs`

// A job whose time is over is left to the sweep that ends it; a wish to wait never reaches beyond the job's own time. Of the accounts the one with the fewest running jobs comes first,
// then the one that was served longest ago: a long queue of one account does not hold up the first job of another.
const TAKE_ANY = query(
  'jobs.claimAny',
  claimedRow,
  sqliteOnly(`
  UPDATE job SET ${HOLD}, engine_id = :engineId, foreseen_ms = NULL
  WHERE seq = (
    SELECT head FROM (
      SELECT running, served, (
        SELECT seq FROM job WHERE status = 'queued' AND account_id = account.id AND pool = :pool
          AND coalesce(queue_until, expires_at) > :now AND priority > ${HELD_LIMIT}
        ORDER BY priority DESC, seq LIMIT 1) AS head
      FROM account INDEXED BY account_waiting
      WHERE queued > 0 AND running < max_running AND id NOT IN (${PAUSED_ACCOUNTS}))
    WHERE head IS NOT NULL ORDER BY running, served, head LIMIT 1)
  RETURNING ${CLAIMED}`),
)

const firstOf = (condition: string, order: string) => `
  (SELECT next.seq FROM job AS next INDEXED BY job_lane
   WHERE next.status = 'queued' AND next.needs <> '' AND next.pool = :pool
     AND coalesce(next.queue_until, next.expires_at) > :now AND ${condition}
   ORDER BY ${order} next.priority DESC, next.seq LIMIT 1)`

/**
 * `head`: the first job of every lane, found by stepping from one to the next; a held one only where all of its account are. `fit`: with every engine that serves it and whose
 * account has room, and what that account has used. `near`: what priority leaves of those within the credit of the one that used
 * least. Of these the best rank wins, unless it lies further behind the oldest job than one may be overtaken; where weights must be
 * loaded, the lane for which the most accounts wait, for each engine that would then have them; then whoever used least.
 */
const PICK_FITTING = query(
  'jobs.pickFitting',
  shape({
    seq: integer(),
    engineId: text(),
    foreseenMs: integer(),
    used: integer(),
    least: integer(),
    floor: integer(),
  }),
  sqliteOnly(`
  WITH RECURSIVE
    bound(floor) AS MATERIALIZED (
      SELECT coalesce((SELECT used_ms FROM fair_share WHERE pool = :pool AND account_id = '${FLOOR}'), 0)),
    offer(engine, position, lane, rank, foreseen) AS MATERIALIZED (
      SELECT value ->> 'engine', value ->> 'position', value ->> 'lane', value ->> 'rank', value ->> 'foreseen' FROM json_each(:offers)),
    head(seq, lane, account_id, priority) AS (
      SELECT seq, needs, account_id, priority FROM job
      WHERE seq = ${firstOf("next.needs > ''", 'next.needs, next.account_id,')}
      UNION ALL
      SELECT job.seq, job.needs, job.account_id, job.priority FROM head CROSS JOIN job WHERE job.seq = coalesce(
        ${firstOf('next.needs = head.lane AND next.account_id > head.account_id', 'next.account_id,')},
        ${firstOf('next.needs > head.lane', 'next.needs, next.account_id,')})),
    fit AS (
      SELECT head.seq, head.lane, offer.engine, offer.position, offer.rank, offer.foreseen, head.priority, bound.floor,
        max(head.priority) OVER (PARTITION BY offer.engine, head.account_id) AS best_priority,
        max(coalesce(share.used_ms, 0), bound.floor) AS used
      FROM head CROSS JOIN bound
        CROSS JOIN account ON account.id = head.account_id AND account.running < account.max_running
          AND account.id NOT IN (${PAUSED_ACCOUNTS}) AND head.priority > ${HELD_LIMIT}
        LEFT JOIN fair_share AS share ON share.pool = :pool AND share.account_id = head.account_id
        CROSS JOIN offer ON offer.lane = head.lane),
    measured AS (SELECT *, min(used) OVER (PARTITION BY engine) AS least FROM fit),
    near AS (
      SELECT *, min(seq) OVER (PARTITION BY engine) AS oldest, count(*) OVER (PARTITION BY engine, lane) AS crowd FROM measured
      WHERE priority = best_priority AND used <= least + :credit)
  SELECT seq, engine AS engine_id, foreseen AS foreseen_ms, used, least, floor FROM near WHERE seq <= oldest + :overtakes
  ORDER BY min(rank, 2), iif(rank < 2, 0, -1.0 * crowd / (rank - 1)), iif(rank < 2, used, 0), seq, position LIMIT 1`),
)
const TAKE_PICKED = query(
  'jobs.claimFitting',
  claimedRow,
  sqliteOnly(
    `UPDATE job SET ${HOLD}, engine_id = :engineId, foreseen_ms = :foreseenMs WHERE seq = :seq RETURNING ${CLAIMED}`,
  ),
)
const CHARGE = command(
  'jobs.chargeClaim',
  sqliteOnly(`INSERT INTO fair_share (pool, account_id, used_ms, changed_at)
    SELECT :pool, id, :used + :foreseenMs * 100 / share_percent, :now FROM account WHERE id = :accountId
    ON CONFLICT (pool, account_id) DO UPDATE SET used_ms = excluded.used_ms, changed_at = excluded.changed_at`),
)
const RAISE_FLOOR = command(
  'jobs.raiseFloor',
  sqliteOnly(`INSERT INTO fair_share (pool, account_id, used_ms, changed_at) VALUES (:pool, '${FLOOR}', :least, :now)
    ON CONFLICT (pool, account_id) DO UPDATE SET used_ms = excluded.used_ms, changed_at = excluded.changed_at`),
)

const TAKE_ROOM = command(
  'jobs.takeRoom',
  sqliteOnly(`UPDATE account SET queued = queued - 1, running = running + 1, served = :turn
    WHERE id = :accountId AND running < max_running`),
)
const UNLIST = command('jobs.unlist', sqliteOnly('DELETE FROM job_output WHERE seq = :seq'))
const LAST_TURN = query(
  'jobs.lastTurn',
  shape({ last: integer() }),
  sqliteOnly('SELECT coalesce(max(served), 0) AS last FROM account'),
)

/** Numbers every claim. A claim that is undone leaves a gap, which changes no order. */
interface ClaimTurns {
  last: number
}

export function createClaimTurns(database: DatabaseSync): ClaimTurns {
  return { last: openStatements(database).get(LAST_TURN)?.last ?? 0 }
}

export function prepareClaim(database: DatabaseSync, turns: ClaimTurns): (request: ClaimRequest) => Claim | null {
  const db = openStatements(database)

  function take({ pool, workerId, leaseId, leaseUntil, now, engines, maxOvertakes, creditMs = 0 }: ClaimRequest) {
    if (db.get(FIND_PAUSED, pausedNames(pool)) !== undefined) return undefined
    const hold = { pool, workerId, leaseId, leaseUntil, now }
    const universal = engines.find(({ lanes }) => lanes === null)
    if (universal !== undefined) return db.get(TAKE_ANY, { ...hold, engineId: universal.engineId })
    const offers = toRows('offers', engines.flatMap(toOffers))
    const picked = db.get(PICK_FITTING, { pool, now, ...offers, overtakes: maxOvertakes, credit: creditMs })
    if (picked === undefined) return undefined
    const { seq, engineId, foreseenMs, used, least, floor } = picked
    const row = db.get(TAKE_PICKED, { ...hold, seq, engineId, foreseenMs })
    if (row === undefined) return undefined
    db.run(CHARGE, { pool, now, accountId: row.accountId, used, foreseenMs })
    if (least > floor) db.run(RAISE_FLOOR, { pool, now, least })
    return row
  }

  return (request) => {
    const row = take(request)
    if (row === undefined) return null
    const { seq, id, accountId } = row
    turns.last += 1
    if (db.run(TAKE_ROOM, { turn: turns.last, accountId }) !== 1)
      throw new Error(`Account ${accountId} has no room for job ${id}.`)
    const earlierOutputs = row.outputsReplaced > 0 ? runOn(db, readOutputs(row)) : []
    if (earlierOutputs.length > 0) db.run(UNLIST, { seq })
    return toClaim(row, request.leaseId, earlierOutputs)
  }
}

function toOffers({ engineId, lanes }: EngineOffer, position: number) {
  return (lanes ?? []).map(({ lane, rank, foreseenMs = UNKNOWN_RUN_MS }) => {
    return { engine: engineId, position, lane, rank, foreseen: foreseenMs }
  })
}

const FIND_CLAIMED = query(
  'jobs.findClaimed',
  claimedRow,
  sqliteOnly(
    `SELECT ${CLAIMED} FROM job INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND lease_id = :leaseId`,
  ),
)

export function prepareFindClaim(database: DatabaseSync): (leaseId: string) => Claim | null {
  const db = openStatements(database)
  return (leaseId) => {
    const row: ClaimedRow | undefined = db.get(FIND_CLAIMED, { leaseId })
    return row === undefined ? null : toClaim(row, leaseId, [])
  }
}

interface Release {
  readonly leases: readonly ReturnedLease[]
  readonly now: Date
}

/** `turns`: of those who claim from the same store. */
export function prepareRelease(
  database: DatabaseSync,
  turns = createClaimTurns(database),
): (release: Release) => TouchedJob[] {
  const db = openStatements(database)
  return ({ leases, now }) => runOn(db, releaseLeases(leases, now, turns.last))
}
