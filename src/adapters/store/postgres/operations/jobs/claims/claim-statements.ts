/**
 * The statements of a claim. Each looks at the first waiting job of every (lane, account) and at nothing behind it, so a backlog
 * costs nothing; each checks the limit of an account on its newest row, so it is never exceeded.
 *
 * A quick statement passes over accounts that somebody else is counting on just now, and returns the jobs that it took. A patient
 * one waits for such an account, and says why it took nothing. Starting a statement costs as much as what it does, so the quick
 * ones, which succeed nearly always, have few steps.
 */
import { statement } from '../../../database/statement.ts'
import { CLAIMED_COLUMNS, type ClaimedRow } from './claimed-job.ts'

// Each costs some 15 microseconds. Where more accounts wait in a lane a claim looks at a part of them, and the next claim of this
// process at the part after that: then the order is fair inside each part, and every part gets its turn.
const MAX_HEADS = 32
const MAX_CHOICES = 8

/** The lane and account where the part that was looked at ends; null when it was the last part. */
type End = readonly [lane: string, accountId: string] | null

type QuickRow = readonly [end: End, ...claimed: ClaimedRow]
/** `wasPicked`: there was a job for an account with room. What was claimed is all null when somebody else was quicker. */
type PatientRow = readonly [wasPicked: boolean, end: End, ...claimed: ClaimedRow]

const WAITS = `status = 'queued' AND pool = $1 AND expires_at > $2`

/** By the key of each account: a join would be free to walk all accounts. */
const ROOM_OF_HEAD = `
  CROSS JOIN LATERAL (
    SELECT running, served, max_running FROM account_load
    WHERE account_load.account_id = head.account_id AND running < max_running OFFSET 0) AS load`

interface Kind {
  /** Steps that end with `head`, and perhaps others that `best` reads. */
  readonly steps: string
  /** Accounts with room, each with an engine and perhaps a lane, the best one first. */
  readonly best: string
  /** What the job must also be. */
  readonly condition: string
  readonly end: string
}

/**
 * `next` locks the first job of the picked account that nobody else is taking, `room` counts it while the account has room, and
 * `start` starts it. What an earlier attempt showed is replaced by what this one makes.
 */
const take = ({ condition }: Kind) => `
  next AS MATERIALIZED (
    SELECT id FROM job WHERE ${WAITS} AND account_id = (SELECT account_id FROM pick) ${condition}
    ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED),
  room AS (
    UPDATE account_load AS load SET running = load.running + 1, started = load.started + 1, served = nextval('claim_turn')
    FROM next WHERE load.account_id = (SELECT account_id FROM pick) AND load.running < load.max_running RETURNING next.id)`

const start = (hold: string) => `
  UPDATE job SET status = 'running', started_at = $2, ${hold}, attempt = attempt + 1, version = version + 1,
    outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0`

const START_ONE = `
  ${start('lease_id = $3, lease_until = $4, worker_id = $5, engine_id = (SELECT engine FROM pick)')}
  WHERE id = (SELECT id FROM room)`

const FREE_ACCOUNT = `
  SELECT 1 FROM account_load WHERE account_load.account_id = best.account_id AND running < max_running
  FOR NO KEY UPDATE SKIP LOCKED`

const quick = (kind: Kind) => `
  WITH RECURSIVE ${kind.steps},
  pick AS MATERIALIZED (
    SELECT best.* FROM (${kind.best}) AS best CROSS JOIN LATERAL (${FREE_ACCOUNT}) AS free LIMIT 1),
  ${take(kind)}
  ${START_ONE} RETURNING ${kind.end}, ${CLAIMED_COLUMNS}`

/**
 * Where all accounts are busy it picks the best one and waits in `room`, where it holds a job and no account: so two that wait for
 * each other do not occur.
 */
const patient = (kind: Kind) => `
  WITH RECURSIVE ${kind.steps},
  best AS MATERIALIZED (${kind.best}),
  pick AS MATERIALIZED (
    (SELECT best.* FROM best CROSS JOIN LATERAL (${FREE_ACCOUNT}) AS free LIMIT 1)
    UNION ALL
    (SELECT * FROM best LIMIT 1)
    LIMIT 1),
  ${take(kind)},
  claimed AS (${START_ONE} RETURNING ${CLAIMED_COLUMNS})
  SELECT EXISTS (SELECT 1 FROM pick), ${kind.end}, claimed.* FROM (SELECT 1) AS one LEFT JOIN claimed ON true`

/**
 * The first job of every account in each lane, found by stepping from one to the next; a job whose time is over is left to the
 * sweep that ends it.
 */
const HEADS = `
  head AS (
    (SELECT needs, account_id, seq, 1 AS depth FROM job WHERE ${WAITS} AND (needs, account_id) > ($8, $6)
     ORDER BY needs, account_id, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      SELECT needs, account_id, seq FROM job WHERE ${WAITS} AND (needs, account_id) > (head.needs, head.account_id)
      ORDER BY needs, account_id, priority DESC, seq LIMIT 1) AS further
    WHERE head.depth < ${MAX_HEADS})`

const END_OF_HEADS = `(SELECT ARRAY[needs, account_id] FROM head WHERE depth = ${MAX_HEADS})`

/**
 * For an engine that takes everything. Of the accounts with room the one with the fewest running jobs comes first, then the one
 * that was served longest ago: a long queue of one account does not hold up the first job of another.
 */
const ANY: Kind = {
  steps: HEADS,
  best: `SELECT head.account_id, $7::text AS engine FROM head ${ROOM_OF_HEAD} ORDER BY running, served, seq LIMIT ${MAX_CHOICES}`,
  condition: '',
  end: END_OF_HEADS,
}

const firstOf = (condition: string) => `
  SELECT seq, needs, account_id, priority FROM job WHERE ${WAITS} AND ${condition}
  ORDER BY account_id, priority DESC, seq LIMIT 1`

/**
 * For engines that serve certain lanes. `lane`: the lanes in which jobs wait, found by stepping from one to the next. `head`: the
 * first job of every account in each of them. `fit`: with every engine that serves it and whose account has room. `near`: what
 * priority and fair share leave of them: an account that was served more recently than another by more claims than a job may be
 * overtaken waits. Of those the best rank wins, unless it lies further behind the oldest job than that.
 */
const FITTING: Kind = {
  steps: `
  lane AS (
    (SELECT needs FROM job WHERE status = 'queued' AND pool = $1 ORDER BY needs LIMIT 1)
    UNION ALL
    SELECT further.needs FROM lane CROSS JOIN LATERAL (
      SELECT needs FROM job WHERE status = 'queued' AND pool = $1 AND needs > lane.needs ORDER BY needs LIMIT 1) AS further),
  offer AS MATERIALIZED (
    SELECT offered.* FROM unnest($7::text[], $8::int[], $9::text[], $10::int[]) AS offered(engine, place, lane, rank)
    JOIN lane ON lane.needs = offered.lane),
  head AS (
    SELECT first.*, 1 AS depth FROM (SELECT DISTINCT lane FROM offer) AS offered CROSS JOIN LATERAL (
      ${firstOf('needs = offered.lane AND account_id > $6')}) AS first
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      ${firstOf('needs = head.needs AND account_id > head.account_id')}) AS further
    WHERE head.depth < ${MAX_HEADS}),
  fit AS (
    SELECT head.seq, head.needs, head.account_id, head.priority, load.running, load.served, offer.engine, offer.place, offer.rank,
      max(head.priority) OVER (PARTITION BY offer.engine, head.account_id) AS best_priority,
      min(load.running) OVER (PARTITION BY offer.engine) AS least_running,
      min(load.served) OVER (PARTITION BY offer.engine, load.running) AS least_served
    FROM head ${ROOM_OF_HEAD} JOIN offer ON offer.lane = head.needs),
  near AS (
    SELECT *, min(seq) OVER (PARTITION BY engine) AS oldest FROM fit
    WHERE priority = best_priority AND running = least_running AND served <= least_served + $11::int)`,
  best: `SELECT engine, needs, account_id FROM near WHERE seq <= oldest + $11::int ORDER BY running, rank, seq, place LIMIT ${MAX_CHOICES}`,
  condition: 'AND needs = (SELECT needs FROM pick)',
  end: `(SELECT ARRAY['', min(account_id)] FROM head WHERE depth = ${MAX_HEADS} HAVING count(*) > 0)`,
}

/** For all: pool, now, lease, until, worker, the account to begin behind; then engine and lane, or the offers and the overtakes. */
export const TAKE_ANY = statement<QuickRow>('jobs.claim_any', quick(ANY))
export const WAIT_FOR_ANY = statement<PatientRow>('jobs.await_any', patient(ANY))
export const TAKE_FITTING = statement<QuickRow>('jobs.claim_fitting', quick(FITTING))
export const WAIT_FOR_FITTING = statement<PatientRow>('jobs.await_fitting', patient(FITTING))

/**
 * Several claims for engines that take everything, in one statement. They take the jobs that as many claims one after the other
 * would have taken: the n-th job of an account is in turn when the account has n - 1 more running than now, and an account that was
 * served in this statement comes behind those with as many running jobs that were not (`step` is n). `shares`: how many jobs that
 * gives each account. `free`: those accounts, unless somebody else is counting on them, with their newest numbers. `turns`: their jobs, in
 * the order in which they would have been claimed. $3, $4, $5 and $7 are lists with an entry for each claim.
 */
const several = (unless: 'SKIP LOCKED' | '') => `
  WITH RECURSIVE ${HEADS},
  shares AS MATERIALIZED (
    SELECT account_id, seq, count(*) AS share FROM (
      SELECT head.account_id, head.seq FROM (SELECT account_id, min(seq) AS seq FROM head GROUP BY account_id) AS head
      ${ROOM_OF_HEAD} CROSS JOIN LATERAL generate_series(1, least(cardinality($3::text[]), max_running - running)) AS step
      ORDER BY running + step, step, served, seq LIMIT cardinality($3::text[])) AS steps
    GROUP BY account_id, seq),
  free AS MATERIALIZED (
    SELECT shares.*, load.running, load.served, load.room FROM (SELECT * FROM shares ORDER BY account_id) AS shares
    CROSS JOIN LATERAL (
      SELECT running, served, max_running - running AS room FROM account_load
      WHERE account_load.account_id = shares.account_id AND running < max_running
      FOR NO KEY UPDATE ${unless}) AS load),
  next AS MATERIALIZED (
    SELECT chosen.*, free.account_id, free.running, free.served, free.seq AS head FROM free CROSS JOIN LATERAL (
      SELECT id, priority, seq FROM job WHERE ${WAITS} AND account_id = free.account_id
      ORDER BY priority DESC, seq LIMIT least(free.share, free.room) FOR UPDATE SKIP LOCKED) AS chosen),
  turns AS MATERIALIZED (
    SELECT id, account_id, row_number() OVER in_order AS place, nextval('claim_turn') AS turn FROM (
      SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY priority DESC, seq) AS step FROM next) AS steps
    WINDOW in_order AS (ORDER BY running + step, step, served, head)),
  served AS MATERIALIZED (SELECT account_id, count(*) AS count, max(turn) AS turn FROM turns GROUP BY account_id),
  room AS (
    UPDATE account_load AS load SET running = load.running + served.count, started = load.started + served.count,
      served = served.turn
    FROM served WHERE load.account_id = ANY (ARRAY(SELECT account_id FROM served)) AND load.account_id = served.account_id
      AND load.running + served.count <= load.max_running
    RETURNING load.account_id)
  ${start(`lease_id = ($3::text[])[place], lease_until = ($4::bigint[])[place], worker_id = ($5::text[])[place],
    engine_id = ($7::text[])[place]`)}
  FROM turns JOIN room USING (account_id) WHERE job.id = turns.id RETURNING ${END_OF_HEADS}, ${CLAIMED_COLUMNS}`

export const TAKE_SEVERAL = statement<QuickRow>('jobs.claim_several', several('SKIP LOCKED'))
/** Waits for accounts in the order of their ids, as everybody does who counts on several. */
export const WAIT_FOR_SEVERAL = statement<QuickRow>('jobs.await_several', several(''))

export const FIND_CLAIMED = statement<[pool: string, outputsReused: number, ...claimed: ClaimedRow]>(
  'jobs.find_claimed',
  `SELECT pool, outputs_reused, ${CLAIMED_COLUMNS} FROM job WHERE lease_id = ANY($1::text[]) AND status IN ('running', 'canceling')`,
)
