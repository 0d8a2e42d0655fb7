/**
 * The statements of several claims at once: one reads what they choose from, and one takes what was planned for them, whatever their
 * number. The limit of an account is checked on its newest row, so it is never exceeded.
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

/** `jobs`: priority and number of each, in the order in which they are taken. All but the first two are null where nobody has room. */
type LookRow = readonly [
  end: End,
  lastTurn: number,
  lane: string | null,
  accountId: string,
  running: number,
  served: number,
  maxRunning: number,
  jobs: string,
]

/** For several claims: the heads whose accounts have room, each with as many of its jobs as all the claims could take. */
const look = (heads: string, end: string) => `
  WITH RECURSIVE ${heads}
  SELECT ${end}, turn.last, room.* FROM (
    SELECT coalesce(pg_sequence_last_value('claim_turn'), 0) AS last) AS turn
  LEFT JOIN (
    SELECT head.needs, head.account_id, running, served, max_running, waiting.jobs FROM head ${ROOM_OF_HEAD}
    CROSS JOIN LATERAL (
      SELECT string_agg(priority || ' ' || seq, ' ') AS jobs FROM (
        SELECT priority, seq FROM job WHERE ${WAITS} AND needs = head.needs AND account_id = head.account_id
        ORDER BY priority DESC, seq LIMIT least($3::bigint, max_running - running)) AS first) AS waiting
    WHERE waiting.jobs IS NOT NULL) AS room ON true`

const LOOK_BEGINS: Beginning = { lane: '$5::text', account: '$4' }

/** For both: pool, now, how many claims, the account and the lane to begin behind; then the lanes that are offered. */
export const LOOK_AT_ANY = statement<LookRow>('jobs.look_at_any', look(allHeads(LOOK_BEGINS), END_OF_ALL))
export const LOOK_AT_FITTING = statement<LookRow>(
  'jobs.look_at_fitting',
  look(
    offeredHeads('SELECT needs AS lane FROM lane WHERE needs = ANY($6::text[])', LOOK_BEGINS),
    endOfOffered(LOOK_BEGINS),
  ),
)

/**
 * Takes what was planned for several claims. `free`: the accounts, unless somebody else is counting on them, with their newest
 * numbers. `next`: the first jobs of each lane of theirs that nobody else is taking, as many as were planned. `turns`: those jobs,
 * each with the claim that it was planned for, as long as the account has room. $3 to $8 are lists with an entry for each claim:
 * account, lane, engine, lease, until, worker.
 */
const planned = (unless: 'SKIP LOCKED' | '') => `
  WITH wanted AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY account_id, lane ORDER BY place) AS step
    FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
      WITH ORDINALITY AS wanted(account_id, lane, engine, lease, until, worker, place)),
  free AS MATERIALIZED (
    SELECT account_id, load.room FROM (SELECT DISTINCT account_id FROM wanted ORDER BY account_id) AS account
    CROSS JOIN LATERAL (
      SELECT max_running - running AS room FROM account_load
      WHERE account_load.account_id = account.account_id AND running < max_running
      FOR NO KEY UPDATE ${unless}) AS load),
  next AS MATERIALIZED (
    SELECT chosen.*, share.account_id, share.lane, free.room FROM (
      SELECT account_id, lane, count(*) AS count FROM wanted GROUP BY account_id, lane) AS share
    JOIN free USING (account_id) CROSS JOIN LATERAL (
      SELECT id, priority, seq FROM job WHERE ${WAITS} AND needs = share.lane AND account_id = share.account_id
      ORDER BY priority DESC, seq LIMIT share.count FOR UPDATE SKIP LOCKED) AS chosen),
  turns AS MATERIALIZED (
    SELECT id, account_id, engine, lease, until, worker, nextval('claim_turn') AS turn FROM (
      SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY place) AS count_before FROM (
        SELECT *, row_number() OVER (PARTITION BY account_id, lane ORDER BY priority DESC, seq) AS step FROM next) AS job
      JOIN wanted USING (account_id, lane, step)
      ORDER BY place) AS claim
    WHERE count_before <= room),
  served AS MATERIALIZED (SELECT account_id, count(*) AS count, max(turn) AS turn FROM turns GROUP BY account_id),
  room AS (
    UPDATE account_load AS load SET running = load.running + served.count, started = load.started + served.count,
      served = served.turn
    FROM served WHERE load.account_id = ANY (ARRAY(SELECT account_id FROM served)) AND load.account_id = served.account_id
      AND load.running + served.count <= load.max_running
    RETURNING load.account_id)
  ${start('lease_id = lease, lease_until = until, worker_id = worker, engine_id = engine')}
  FROM turns JOIN room USING (account_id) WHERE job.id = turns.id RETURNING ${CLAIMED_COLUMNS}`

export const TAKE_PLANNED = statement<ClaimedRow>('jobs.claim_planned', planned('SKIP LOCKED'))
/** Waits for accounts in the order of their ids, as everybody does who counts on several. */
export const WAIT_FOR_PLANNED = statement<ClaimedRow>('jobs.await_planned', planned(''))
