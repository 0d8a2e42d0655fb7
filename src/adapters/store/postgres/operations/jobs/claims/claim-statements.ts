/**
 * The statements of a single claim. Each looks at the first waiting job of every (lane, account) and at nothing behind it, so a backlog
 * costs nothing; each checks the limit of an account on its newest row, so it is never exceeded.
 *
 * A quick statement passes over accounts that somebody else is counting on just now, and returns the jobs that it took. A patient
 * one waits for such an account, and says why it took nothing. Starting a statement costs as much as what it does, so the quick
 * ones, which succeed nearly always, have few steps.
 */
import { statement } from '../../../database/statement.ts'
import { CLAIMED_COLUMNS, type ClaimedRow } from './claimed-job.ts'
import {
  allHeads,
  type Beginning,
  END_OF_ALL,
  type End,
  endOfOffered,
  offeredHeads,
  ROOM_OF_HEAD,
  start,
  WAITS,
} from './queue-heads.ts'

const MAX_CHOICES = 8

type QuickRow = readonly [end: End, ...claimed: ClaimedRow]
/** `wasPicked`: there was a job for an account with room. What was claimed is all null when somebody else was quicker. */
type PatientRow = readonly [wasPicked: boolean, end: End, ...claimed: ClaimedRow]

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
 * `start` starts it.
 */
const take = ({ condition }: Kind) => `
  next AS MATERIALIZED (
    SELECT id FROM job WHERE ${WAITS} AND account_id = (SELECT account_id FROM pick) ${condition}
    ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED),
  room AS (
    UPDATE account_load AS load SET running = load.running + 1, started = load.started + 1, served = nextval('claim_turn')
    FROM next WHERE load.account_id = (SELECT account_id FROM pick) AND load.running < load.max_running RETURNING next.id)`

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
 * For an engine that takes everything. Of the accounts with room the one with the fewest running jobs comes first, then the one
 * that was served longest ago: a long queue of one account does not hold up the first job of another.
 */
const ANY: Kind = {
  steps: allHeads({ lane: '$8', account: '$6' }),
  best: `SELECT head.account_id, $7::text AS engine FROM head ${ROOM_OF_HEAD} ORDER BY running, served, seq LIMIT ${MAX_CHOICES}`,
  condition: '',
  end: END_OF_ALL,
}

const FITTING_BEGINS: Beginning = { lane: '$12::text', account: '$6' }

/**
 * For engines that serve certain lanes. `fit`: each head with every engine that serves it and whose account has room. `near`: what
 * priority and fair share leave of them: an account that was served more recently than another by more claims than a job may be
 * overtaken waits. Of those the best rank wins, unless it lies further behind the oldest job than that.
 */
const FITTING: Kind = {
  steps: `${offeredHeads(
    `SELECT offered.* FROM unnest($7::text[], $8::int[], $9::text[], $10::int[]) AS offered(engine, place, lane, rank)
    JOIN lane ON lane.needs = offered.lane`,
    FITTING_BEGINS,
  )},
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
  end: endOfOffered(FITTING_BEGINS),
}

/**
 * For all: pool, now, lease, until, worker, the account to begin behind; then engine and the lane to begin at, or the offers, the
 * overtakes and the lane to begin behind.
 */
export const TAKE_ANY = statement<QuickRow>('jobs.claim_any', quick(ANY))
export const WAIT_FOR_ANY = statement<PatientRow>('jobs.await_any', patient(ANY))
export const TAKE_FITTING = statement<QuickRow>('jobs.claim_fitting', quick(FITTING))
export const WAIT_FOR_FITTING = statement<PatientRow>('jobs.await_fitting', patient(FITTING))

export const FIND_CLAIMED = statement<[pool: string, outputsReused: number, ...claimed: ClaimedRow]>(
  'jobs.find_claimed',
  `SELECT pool, outputs_reused, ${CLAIMED_COLUMNS} FROM job WHERE lease_id = ANY($1::text[]) AND status IN ('running', 'canceling')`,
)
