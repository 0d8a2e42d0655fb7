/**
 * Claim: one statement finds the best candidate and takes it, guarded by its account's room. Any number of processes claim at the same
 * time: a job that another one is taking is passed over, and a claim that lost such a race is tried again at once. Claims of this
 * process for one pool are made one after the other, so that each sees what the one before it took; one that is held up lets the next
 * one go ahead.
 */
import { settlesWithin } from '../../../../../../lib/waiting/sleep.ts'
import type { EngineOffer } from '../../../../../domain/engine/fleet/lane-offers.ts'
import { isStoreAway } from '../../../../../domain/errors.ts'
import type { Claim, ClaimRequest } from '../../../../../domain/jobs/job-store.ts'
import { mustMove } from '../../../../../domain/jobs/transitions.ts'
import { type ClaimedRow, claimedRow, toClaim } from '../../../rows/jobs/claimed-job.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, HELD_LIMIT } from '../../../rows/jobs/job.ts'
import { postgresOnly, query } from '../../../statements/statement.ts'
import { FLOOR, UNKNOWN_RUN_MS } from '../../../stores/jobs/fair-share.ts'
import { PAUSED, PAUSED_ACCOUNTS, pausedNames } from '../../../stores/jobs/queue-pauses.ts'
import { outputRow } from '../../../tables/jobs.ts'
import { flag, nullable, shape, text } from '../../../tables/table.ts'
import type { Connected } from '../../database/connections.ts'
import { isDuplicateOf, isTimeout } from '../../database/postgres-error.ts'

mustMove('queued', 'running')

// Each costs some 15 microseconds. Where more wait, first jobs of accounts in all lanes together, or lanes, a claim looks at a part of
// them, and the next claim of this process at the part after that: the order is fair inside each part, and every part gets its turn.
const MAX_HEADS = 4_096
const MAX_LANES = 256
const MAX_CHOICES = 8
/** The floor of a pool is one row, which every claim of every process would wait for. */
const FLOOR_STEP_MS = 1000

const WAITS = `status = 'queued' AND pool = :pool AND expires_at > :now AND coalesce(queue_until, expires_at) > :now`

/** A job with everything that its run needs; what lies beside it is read only where the job's flags say that there is something. */
const CLAIMED = `job.lease_id, job.run_id, job.seq, job.id, job.account_id, pool, job.status, priority, created_at, started_at,
  NULL::bigint AS completed_at, expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress,
  NULL::text AS error, NULL::uuid AS reused_from, needs, job.engine_id, engine_losses, not_before, queue_until,
  needs_extra_data AS extra_data_flags,
  (SELECT workflow FROM job_text WHERE job_id = job.id AND expires_at = job.expires_at) AS workflow,
  CASE WHEN needs_extra_data & ${HAS_TRACE} <> 0 THEN (
    SELECT origin FROM job_text WHERE job_id = job.id AND expires_at = job.expires_at) END AS origin,
  CASE WHEN needs_extra_data & ${HAS_CREDENTIALS} <> 0 THEN (SELECT sealed FROM job_secret WHERE job_id = job.id) END AS sealed,
  CASE WHEN needs_extra_data & ${HAS_NOTES} <> 0 THEN (SELECT text FROM job_notes WHERE job_id = job.id) END AS notes,
  CASE WHEN input_count > 0 THEN (
    SELECT json_agg(json_build_object('name', name, 'hash', hash, 'sizeBytes', size_bytes, 'contentType', content_type)
      ORDER BY position)::text FROM job_input WHERE job_id = job.id) END AS inputs`

/**
 * `lane`: the lanes in which jobs wait, found by stepping from one to the next. `offer`: what the engines offer for them; one without
 * a lane is offered for all. `head`: the first job of every account in each of these lanes, nothing behind which is looked at, so that
 * a backlog costs nothing (the lanes take turns, and `seen` counts how many were looked at); a job whose time is over is left to the
 * sweep that ends it, and a held one is the first only where all are. `fit`: each head with every engine that serves it and whose account has room, looked up by the key of each
 * account (a join would be free to walk all accounts), and what that account has used. `near`: what priority leaves of those within the
 * credit of the one that used least; of engines without lanes, those with the fewest running jobs that were served longest ago. `best`:
 * of these the best rank wins, unless it lies further behind the oldest job than one may be overtaken; where weights must be loaded, the
 * lane for which the most accounts wait, for each engine that would then have them; then whoever used least.
 *
 * `pick`: the best one whose account nobody else is counting on just now; where all are busy, the best one: it then waits in `room`,
 * where it holds a job and no account, so two that wait for each other do not occur. `next` locks its first job that nobody else is
 * taking, and `room` counts it while the account has room, on its newest row. `charged` and `raised` follow `room`, so that the floor
 * is locked last; it stays where it is while a claim sees a part of those that wait.
 */
const TAKE = query(
  'jobs.claim',
  shape({
    wasPicked: flag('boolean'),
    endLane: nullable(text()),
    endAccountId: nullable(text()),
    ...claimedRow.fields,
  }),
  postgresOnly(`
  WITH RECURSIVE
  lane AS (
    (SELECT needs, 1 AS depth FROM job WHERE status = 'queued' AND pool = :pool AND needs >= :fromLane
       AND NOT EXISTS (${PAUSED}) ORDER BY needs LIMIT 1)
    UNION ALL
    SELECT further.needs, lane.depth + 1 FROM lane CROSS JOIN LATERAL (
      SELECT needs FROM job WHERE status = 'queued' AND pool = :pool AND needs > lane.needs ORDER BY needs LIMIT 1) AS further
    WHERE lane.depth <= ${MAX_LANES}),
  bound AS MATERIALIZED (
    SELECT coalesce((SELECT used_ms FROM fair_share WHERE pool = :pool AND account_id = '${FLOOR}'), 0) AS floor),
  offer AS MATERIALIZED (
    SELECT engine, place, lane.needs AS lane, rank, foreseen
    FROM unnest(:engines::text[], :places::int[], :lanes::text[], :ranks::int[], :foreseen::bigint[])
      AS offered(engine, place, lane, rank, foreseen)
    JOIN lane ON lane.depth <= ${MAX_LANES} AND (offered.lane IS NULL OR offered.lane = lane.needs)),
  head AS (
    SELECT first.*, count(*) OVER () AS seen FROM (SELECT DISTINCT lane FROM offer) AS offered CROSS JOIN LATERAL (
      SELECT seq, needs, account_id, priority FROM job WHERE ${WAITS} AND needs = offered.lane AND account_id > :afterAccountId
      ORDER BY account_id, priority DESC, seq LIMIT 1) AS first
    UNION ALL
    SELECT further.*, head.seen + count(*) OVER () FROM head CROSS JOIN LATERAL (
      SELECT seq, needs, account_id, priority FROM job WHERE ${WAITS} AND needs = head.needs AND account_id > head.account_id
      ORDER BY account_id, priority DESC, seq LIMIT 1) AS further
    WHERE head.seen < ${MAX_HEADS}),
  fit AS (
    SELECT head.seq, head.needs, head.account_id, head.priority, load.running, load.served, offer.engine, offer.place, offer.rank,
      offer.foreseen, bound.floor, greatest(coalesce(share.used_ms, 0), bound.floor) AS used,
      max(head.priority) OVER (PARTITION BY offer.engine, head.account_id) AS best_priority,
      min(load.running) OVER (PARTITION BY offer.engine) AS least_running,
      min(load.served) OVER (PARTITION BY offer.engine, load.running) AS least_served
    FROM head CROSS JOIN LATERAL (
      SELECT running, served FROM account_load
      WHERE account_load.account_id = head.account_id AND running < max_running AND head.priority > ${HELD_LIMIT}
        AND account_id NOT IN (${PAUSED_ACCOUNTS}) OFFSET 0) AS load
    CROSS JOIN bound
    LEFT JOIN LATERAL (
      SELECT used_ms FROM fair_share WHERE pool = :pool AND account_id = head.account_id OFFSET 0) AS share ON true
    JOIN offer ON offer.lane = head.needs),
  measured AS (SELECT *, min(used) OVER (PARTITION BY engine) AS least FROM fit),
  near AS (
    SELECT *, min(seq) OVER (PARTITION BY engine) AS oldest, count(*) OVER (PARTITION BY engine, needs) AS crowd FROM measured
    WHERE priority = best_priority AND CASE WHEN foreseen IS NULL
      THEN running = least_running AND served <= least_served ELSE used <= least + :credit::bigint END),
  best AS MATERIALIZED (
    SELECT engine, needs, account_id, foreseen, used, least, floor FROM near WHERE seq <= oldest + :overtakes::int
    ORDER BY CASE WHEN foreseen IS NULL THEN running ELSE 0 END, least(rank, 2),
      CASE WHEN rank < 2 THEN 0 ELSE -1.0 * crowd / (rank - 1) END, CASE WHEN foreseen IS NULL OR rank >= 2 THEN 0 ELSE used END,
      seq, place LIMIT ${MAX_CHOICES}),
  pick AS MATERIALIZED (
    (SELECT best.* FROM best CROSS JOIN LATERAL (
       SELECT 1 FROM account_load WHERE account_load.account_id = best.account_id AND running < max_running
       FOR NO KEY UPDATE SKIP LOCKED) AS free LIMIT 1)
    UNION ALL
    (SELECT * FROM best LIMIT 1)
    LIMIT 1),
  next AS MATERIALIZED (
    SELECT id FROM job
    WHERE ${WAITS} AND priority > ${HELD_LIMIT} AND account_id = (SELECT account_id FROM pick) AND needs = (SELECT needs FROM pick)
    ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED),
  room AS (
    UPDATE account_load AS load SET running = load.running + 1, started = load.started + 1, served = nextval('claim_turn')
    FROM next WHERE load.account_id = (SELECT account_id FROM pick) AND load.running < load.max_running RETURNING next.id),
  charged AS (
    INSERT INTO fair_share (pool, account_id, used_ms, changed_at)
    SELECT :pool, pick.account_id, pick.used + pick.foreseen * 100 / load.share_percent, :now
    FROM room CROSS JOIN pick JOIN account_load AS load ON load.account_id = pick.account_id WHERE pick.foreseen IS NOT NULL
    ON CONFLICT (pool, account_id) DO UPDATE SET
      used_ms = greatest(fair_share.used_ms, (SELECT floor FROM bound)) + excluded.used_ms - (SELECT used FROM pick),
      changed_at = excluded.changed_at),
  raised AS (
    INSERT INTO fair_share (pool, account_id, used_ms, changed_at)
    SELECT :pool, '${FLOOR}', pick.least, :now FROM room CROSS JOIN pick
    WHERE pick.foreseen IS NOT NULL AND pick.least >= pick.floor + ${FLOOR_STEP_MS}
      AND :fromLane = '' AND NOT EXISTS (SELECT 1 FROM head WHERE seen >= ${MAX_HEADS}) AND NOT EXISTS (SELECT 1 FROM lane WHERE depth > ${MAX_LANES})
    ON CONFLICT (pool, account_id) DO UPDATE SET used_ms = greatest(fair_share.used_ms, excluded.used_ms), changed_at = excluded.changed_at),
  claimed AS (
    UPDATE job SET status = 'running', started_at = :now, lease_id = :leaseId, lease_until = :leaseUntil, worker_id = :workerId,
      engine_id = (SELECT engine FROM pick), foreseen_ms = (SELECT foreseen FROM pick), attempt = attempt + 1, version = version + 1,
      outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0
    WHERE id = (SELECT id FROM room) RETURNING ${CLAIMED})
  SELECT EXISTS (SELECT 1 FROM pick) AS was_picked, part.end_lane, part.end_account_id, claimed.*
  FROM (
    -- The other accounts of these lanes come first, then the other lanes.
    SELECT CASE WHEN more.account_id IS NULL THEN (SELECT needs FROM lane WHERE depth > ${MAX_LANES}) ELSE :fromLane END AS end_lane,
      more.account_id AS end_account_id
    FROM (SELECT min(account_id) AS account_id FROM head WHERE seen >= ${MAX_HEADS}) AS more) AS part
  LEFT JOIN claimed ON true`),
)

const FIND_CLAIMED = query(
  'jobs.find_claimed',
  claimedRow,
  postgresOnly(`SELECT ${CLAIMED} FROM job WHERE lease_id = :leaseId AND status IN ('running', 'canceling')`),
)

// Under the job's lock, so that a worker that lost its lease takes nothing off the list of the next one.
const UNLIST = query(
  'outputs.unlist',
  outputRow,
  postgresOnly(`
  WITH held AS MATERIALIZED (SELECT id FROM job WHERE id = :jobId AND lease_id = :leaseId FOR NO KEY UPDATE),
  listed AS MATERIALIZED (
    SELECT output.* FROM held JOIN output ON output.job_id = held.id
    WHERE output.expires_at = :expiresAt AND output.position IS NOT NULL),
  unlisted AS (
    UPDATE output SET position = NULL FROM listed WHERE output.id = listed.id AND output.expires_at = :expiresAt)
  SELECT id AS asset_id, node_id, name, type, content_type, size_bytes, hash FROM listed ORDER BY position`),
)

/** Where a part of the waiting lanes and accounts begins. */
interface Place {
  readonly fromLane: string
  readonly afterAccountId: string
}

const BEGINNING: Place = { fromLane: '', afterAccountId: '' }
const MAX_PARTS = 256
const MAX_RACES = 8
const MAX_TRIES = 3
// A claim takes a few milliseconds. One that waits for a lock or for the network must not keep the others from it for longer.
const MAX_TURN_MS = 1_000

/** Remembers, for each pool that is crowded, where its next claim goes on. */
export function createClaim(relaxed: Connected): (request: ClaimRequest) => Promise<Claim | null> {
  const starts = new Map<string, Place>()
  const inLine = createLines()

  async function claim(request: ClaimRequest, isLate: () => boolean): Promise<Claim | null> {
    const { pool } = request
    const start = starts.get(pool) ?? BEGINNING
    let from = start
    let races = 0
    for (let parts = 1; parts <= MAX_PARTS && !isLate(); ) {
      const { row, wasPicked, end } = await takeSurely(relaxed, request, from)
      if (row !== null) {
        if (end === null) starts.delete(pool)
        else starts.set(pool, end)
        return handOver(relaxed, row, request)
      }
      if (wasPicked) {
        // There was a job for an account with room, and another process was quicker.
        races += 1
        if (races === MAX_RACES) return null
        continue
      }
      // No account in this part has both room and a job: go on to the next part, and finally to those before the first one.
      const isRound = isBefore(from, start) && (end === null || !isBefore(end, start))
      if (isRound || (end === null && start === BEGINNING)) {
        starts.delete(pool)
        return null
      }
      from = end ?? BEGINNING
      parts += 1
    }
    // So much was looked at in vain, or so late, that the rest is left to the next claim.
    if (from !== BEGINNING) starts.set(pool, from)
    return null
  }

  return (request) => {
    const isLate = createDeadline(request)
    return inLine(request.pool, () => claim(request, isLate))
  }
}

/**
 * The end of the lease was chosen when the claim was asked for. A job that is taken when half of the lease is over might be taken back
 * before its worker renews it, so by then nothing is taken.
 */
function createDeadline({ now, leaseUntil }: ClaimRequest): () => boolean {
  const lateAt = performance.now() + (leaseUntil.getTime() - now.getTime()) / 2
  return () => performance.now() > lateAt
}

/** Lets tasks of one name begin one after the other: each when the one before it has ended, or has had its time. */
function createLines() {
  const ends = new Map<string, Promise<unknown>>()
  return <Result>(name: string, run: () => Promise<Result>): Promise<Result> => {
    const before = ends.get(name) ?? Promise.resolve()
    const result = before.then(run)
    const end = before.then(() => settlesWithin(result, MAX_TURN_MS))
    ends.set(name, end)
    end.then(() => {
      if (ends.get(name) === end) ends.delete(name)
    })
    return result
  }
}

function isBefore(one: Place, other: Place): boolean {
  return one.fromLane === other.fromLane ? one.afterAccountId < other.afterAccountId : one.fromLane < other.fromLane
}

interface Taken {
  readonly row: ClaimedRow | null
  readonly wasPicked: boolean
  /** Where the next part begins; null: this was the last one. */
  readonly end: Place | null
}

/**
 * After a broken connection nobody knows whether something was taken: the lease finds its job. A first try that the server is
 * still at work on cannot take a second job for the same lease: that a lease holds one job is kept by a unique index.
 */
async function takeSurely(relaxed: Connected, request: ClaimRequest, from: Place): Promise<Taken> {
  for (let tries = 1; ; tries += 1) {
    try {
      if (tries > 1) {
        const held = await relaxed.get(FIND_CLAIMED, { leaseId: request.leaseId })
        if (held !== undefined) return { row: held, wasPicked: true, end: null }
      }
      return await take(relaxed, request, from)
    } catch (error) {
      // One that took too long was undone.
      const mayHaveTaken = (isStoreAway(error) && !isTimeout(error)) || isDuplicateOf(error, 'job_held')
      if (!mayHaveTaken || tries === MAX_TRIES) throw error
    }
  }
}

async function take(relaxed: Connected, request: ClaimRequest, from: Place): Promise<Taken> {
  const { pool, now, leaseId, leaseUntil, workerId, maxOvertakes, creditMs = 0 } = request
  const universal = request.engines.find(({ lanes }) => lanes === null)
  const offers =
    universal === undefined ? request.engines.flatMap(toOffers) : [{ ...ANY_LANE, engine: universal.engineId }]
  const found = await relaxed.get(TAKE, {
    ...{ pool, now, leaseId, leaseUntil, workerId, ...from, ...pausedNames(pool) },
    overtakes: universal === undefined ? maxOvertakes : 0,
    credit: creditMs,
    engines: offers.map(({ engine }) => engine),
    places: offers.map(({ place }) => place),
    lanes: offers.map(({ lane }) => lane),
    ranks: offers.map(({ rank }) => rank),
    foreseen: offers.map(({ foreseen }) => foreseen),
  })
  if (found === undefined) throw new Error('A claim is always answered with a row.')
  const { wasPicked, endLane, endAccountId, ...row } = found
  const end = endLane === null ? null : { fromLane: endLane, afterAccountId: endAccountId ?? '' }
  return { row: row.leaseId === null ? null : row, wasPicked, end }
}

interface Offer {
  readonly engine: string
  readonly place: number
  readonly lane: string | null
  readonly rank: number
  /** null: its runs are not charged to their accounts' shares. */
  readonly foreseen: number | null
}

const ANY_LANE = { place: 0, lane: null, rank: 0, foreseen: null }

function toOffers({ engineId, lanes }: EngineOffer, place: number): Offer[] {
  return (lanes ?? []).map(({ lane, rank, foreseenMs = UNKNOWN_RUN_MS }) => {
    return { engine: engineId, place, lane, rank, foreseen: foreseenMs }
  })
}

/** What an earlier attempt showed is not listed from now on. */
async function handOver(db: Connected, row: ClaimedRow, { leaseId }: ClaimRequest): Promise<Claim> {
  const { id: jobId, expiresAt, outputsReplaced } = row
  const earlierOutputs = outputsReplaced === 0 ? [] : await db.all(UNLIST, { jobId, leaseId, expiresAt })
  return toClaim(row, leaseId, earlierOutputs)
}

export async function findClaim(relaxed: Connected, leaseId: string): Promise<Claim | null> {
  const row = await relaxed.get(FIND_CLAIMED, { leaseId })
  return row === undefined ? null : toClaim(row, leaseId, [])
}
