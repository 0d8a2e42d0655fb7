/**
 * Claim: one statement finds the best candidate and takes it, guarded by its account's room. It looks at the first waiting job of
 * each (lane, account) and at nothing behind it, so a backlog costs nothing. Any number of nodes claim at the same time: a job that
 * another one is taking is passed over, and the limit of an account is checked on its newest row, so it is never exceeded. A claim
 * that lost such a race is tried again at once.
 */

import type { EngineOffer } from '../../../../../domain/engine/fleet/lane-offers.ts'
import { isStoreAway } from '../../../../../domain/errors.ts'
import type { Claim, ClaimRequest } from '../../../../../domain/jobs/job-store.ts'
import { COLUMN, type JobRow, toJob, toOutput } from '../../../rows/job-row.ts'
import type { Connected } from '../../database/connections.ts'
import { isDuplicateOf } from '../../database/postgres-error.ts'
import { type Statement, statement } from '../../database/statement.ts'
import { unlistOutputs } from './job-outputs.ts'
import { HAS_CREDENTIALS, LIVE_COLUMNS } from './job-row.ts'

// Each costs some 20 microseconds. Where more accounts wait in a lane a claim looks at a part of them, and the next claim of this
// node at the part after that: then the order is fair inside each part, and every part gets its turn.
const MAX_HEADS = 32
const MAX_CHOICES = 8
const MAX_PARTS = 256
const MAX_RACES = 8
const MAX_TRIES = 3

const WAITS = `status = 'queued' AND pool = $1 AND expires_at > $5`

/**
 * `best` has named queues, the best one first. `pick` is the first of them whose account nobody else is counting on just now, so
 * that claims of several nodes do not queue up behind one account; where all are busy it is the best one, and waits for its turn.
 * `next` locks its first job that nobody else is taking, `room` counts it while its account has room, by the newest row of the
 * account, and `taken` starts it. What an earlier attempt showed is replaced by what this one makes.
 */
const take = (next: string) => `
  pick AS MATERIALIZED (
    (SELECT best.* FROM best CROSS JOIN LATERAL (
       SELECT 1 FROM account_load WHERE account_load.account_id = best.account_id AND running < max_running
       FOR NO KEY UPDATE SKIP LOCKED) AS free LIMIT 1)
    UNION ALL
    (SELECT * FROM best LIMIT 1)
    LIMIT 1),
  next AS MATERIALIZED (
    SELECT chosen.id, pick.account_id, pick.engine FROM pick CROSS JOIN LATERAL (
      SELECT id FROM job WHERE ${WAITS} AND account_id = pick.account_id ${next}
      ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED) AS chosen),
  room AS (
    UPDATE account_load AS load SET running = load.running + 1, started = load.started + 1, served = nextval('claim_turn')
    FROM next WHERE load.account_id = next.account_id AND load.running < load.max_running RETURNING load.account_id),
  taken AS (
    UPDATE job SET status = 'running', started_at = $5, lease_id = $3, lease_until = $4, worker_id = $2, engine_id = next.engine,
      attempt = attempt + 1, version = version + 1,
      outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0
    FROM next JOIN room USING (account_id) WHERE job.id = next.id RETURNING job.*)
  SELECT EXISTS (SELECT 1 FROM pick), last_head.needs, last_head.account_id, taken.*
  FROM (SELECT 1) AS one
  LEFT JOIN (SELECT needs, account_id FROM head WHERE depth = ${MAX_HEADS} ORDER BY account_id LIMIT 1) AS last_head ON true
  LEFT JOIN (SELECT ${LIVE_COLUMNS}, needs, engine_id, needs_extra_data, input_count, engine_losses, ${workflowOf('taken')} FROM taken) AS taken ON true`

function workflowOf(table: string): string {
  return `(SELECT workflow FROM job_text WHERE job_id = ${table}.id AND expires_at = ${table}.expires_at)`
}

const LOAD = `
  CROSS JOIN LATERAL (
    SELECT running, served FROM account_load
    WHERE account_load.account_id = head.account_id AND running < max_running OFFSET 0) AS load`

type Details = readonly [
  needs: string,
  engineId: string,
  extraDataFlags: number,
  inputCount: number,
  engineLosses: number,
  workflow: string | null,
]

const DETAIL_COUNT = 6

type Held = readonly [...JobRow, ...Details]

/** The last head: where the part that was looked at ends, null when it was the last part. `held` is all null when none was taken. */
type TakenRow = readonly [wasPicked: boolean, lastLane: string | null, lastAccount: string | null, ...held: Held]

/**
 * For an engine that takes everything. `head`: the first job of every account in each lane, found by stepping from one to the next;
 * a job whose time is over is left to the sweep that ends it. Of the accounts with room the one with the fewest running jobs comes
 * first, then the one that was served longest ago: a long queue of one account does not hold up the first job of another.
 */
const TAKE_ANY = statement<TakenRow>(
  'jobs.claim_any',
  `WITH RECURSIVE
  head AS (
    (SELECT needs, account_id, seq, 1 AS depth FROM job WHERE ${WAITS} AND (needs, account_id) > ($7, $8)
     ORDER BY needs, account_id, priority DESC, seq LIMIT 1)
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      SELECT needs, account_id, seq FROM job WHERE ${WAITS} AND (needs, account_id) > (head.needs, head.account_id)
      ORDER BY needs, account_id, priority DESC, seq LIMIT 1) AS further
    WHERE head.depth < ${MAX_HEADS}),
  best AS MATERIALIZED (
    SELECT head.account_id, $6::text AS engine FROM head ${LOAD} ORDER BY running, served, seq LIMIT ${MAX_CHOICES}),
  ${take('')}`,
)

const firstOf = (condition: string) => `
  SELECT seq, needs, account_id, priority FROM job WHERE ${WAITS} AND ${condition}
  ORDER BY account_id, priority DESC, seq LIMIT 1`

/**
 * For engines that serve certain lanes. `lane`: the lanes in which jobs wait, found by stepping from one to the next. `head`: the
 * first job of every account in each of them. `fit`: with every engine that serves it and whose account has room. `near`: what
 * priority and fair share leave of them: an account that was served more recently than another by more claims than a job may be
 * overtaken waits. Of those the best rank wins, unless it lies further behind the oldest job than that.
 */
const TAKE_FITTING = statement<TakenRow>(
  'jobs.claim_fitting',
  `WITH RECURSIVE
  lane AS (
    (SELECT needs FROM job WHERE status = 'queued' AND pool = $1 ORDER BY needs LIMIT 1)
    UNION ALL
    SELECT further.needs FROM lane CROSS JOIN LATERAL (
      SELECT needs FROM job WHERE status = 'queued' AND pool = $1 AND needs > lane.needs ORDER BY needs LIMIT 1) AS further),
  offer AS MATERIALIZED (
    SELECT offered.* FROM unnest($6::text[], $7::int[], $8::text[], $9::int[]) AS offered(engine, place, lane, rank)
    JOIN lane ON lane.needs = offered.lane),
  head AS (
    SELECT first.*, 1 AS depth FROM (SELECT DISTINCT lane FROM offer) AS offered CROSS JOIN LATERAL (
      ${firstOf('needs = offered.lane AND account_id > $11')}) AS first
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      ${firstOf('needs = head.needs AND account_id > head.account_id')}) AS further
    WHERE head.depth < ${MAX_HEADS}),
  fit AS (
    SELECT head.seq, head.needs, head.account_id, head.priority, load.running, load.served, offer.engine, offer.place, offer.rank,
      max(head.priority) OVER (PARTITION BY offer.engine, head.account_id) AS best_priority,
      min(load.running) OVER (PARTITION BY offer.engine) AS least_running,
      min(load.served) OVER (PARTITION BY offer.engine, load.running) AS least_served
    FROM head ${LOAD} JOIN offer ON offer.lane = head.needs),
  near AS (
    SELECT *, min(seq) OVER (PARTITION BY engine) AS oldest FROM fit
    WHERE priority = best_priority AND running = least_running AND served <= least_served + $10::int),
  best AS MATERIALIZED (
    SELECT engine, needs, account_id FROM near WHERE seq <= oldest + $10::int
    ORDER BY running, rank, seq, place LIMIT ${MAX_CHOICES}),
  ${take('AND needs = pick.needs')}`,
)

/** Where a part of the waiting accounts ends. For engines that serve certain lanes, parts are the same accounts in all of them. */
interface PartEnd {
  readonly lane: string
  readonly accountId: string
}

const BEGINNING: PartEnd = { lane: '', accountId: '' }

function isBefore(one: PartEnd, other: PartEnd): boolean {
  return one.lane === other.lane ? one.accountId < other.accountId : one.lane < other.lane
}

type ClaimJob = (request: ClaimRequest) => Promise<Claim | null>

/** Remembers, for each pool that is crowded, where the next claim goes on. */
export function createClaimJob(relaxed: Connected): ClaimJob {
  const starts = new Map<string, PartEnd>()

  return async (request) => {
    const { pool, leaseId } = request
    const start = starts.get(pool) ?? BEGINNING
    let after = start
    let races = 0
    for (let parts = 1; parts <= MAX_PARTS; ) {
      const { held, wasPicked, end } = await takeSurely(relaxed, request, after)
      if (held !== null) {
        if (end === null) starts.delete(pool)
        else starts.set(pool, end)
        return toClaim(relaxed, held, leaseId)
      }
      if (wasPicked) {
        races += 1
        if (races === MAX_RACES) return null
        continue
      }
      // Nobody in this part has both room and a job: on to the next part, at last to those before the first one.
      const isRound = isBefore(after, start) && !(end !== null && isBefore(end, start))
      if (isRound || (end === null && start === BEGINNING)) break
      after = end ?? BEGINNING
      parts += 1
    }
    starts.delete(pool)
    return null
  }
}

interface Taken {
  readonly held: Held | null
  /** There was a job for an account with room; without `held` somebody else was quicker. */
  readonly wasPicked: boolean
  readonly end: PartEnd | null
}

const FIND_MINE = statement<Held>(
  'jobs.find_claimed',
  `SELECT ${LIVE_COLUMNS}, needs, engine_id, needs_extra_data, input_count, engine_losses, ${workflowOf('job')}
   FROM job WHERE lease_id = $1 AND status IN ('running', 'canceling')`,
)

export async function findClaim(relaxed: Connected, leaseId: string): Promise<Claim | null> {
  const held = await relaxed.get(FIND_MINE, [leaseId])
  return held === undefined ? null : readClaim(relaxed, held, leaseId)
}

/**
 * After a broken connection nobody knows whether something was taken: asked again, the same lease finds its job. That a lease holds
 * one job is kept by a unique index.
 */
async function takeSurely(relaxed: Connected, request: ClaimRequest, after: PartEnd): Promise<Taken> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await takeOnce(relaxed, request, after)
    } catch (error) {
      if (isDuplicateOf(error, 'job_held')) {
        const held = await relaxed.get(FIND_MINE, [request.leaseId])
        if (held !== undefined) return { held, wasPicked: true, end: null }
      } else if (!isStoreAway(error)) throw error
      if (tries === MAX_TRIES) throw error
    }
  }
}

async function takeOnce(relaxed: Connected, request: ClaimRequest, after: PartEnd): Promise<Taken> {
  const row = await relaxed.get(...toQuestion(request, after))
  if (row === undefined) throw new Error('A claim is always answered with a row.')
  const [wasPicked, lane, accountId, ...held] = row
  const isInOneOrder = request.engines.some(({ lanes }) => lanes === null)
  const end = lane === null || accountId === null ? null : { lane: isInOneOrder ? lane : '', accountId }
  return { wasPicked, end, held: held[COLUMN.id] === null ? null : held }
}

function toQuestion(request: ClaimRequest, after: PartEnd): [Statement<TakenRow>, unknown[]] {
  const { pool, workerId, leaseId, leaseUntil, now, engines, maxOvertakes } = request
  const hold = [pool, workerId, leaseId, leaseUntil.getTime(), now.getTime()]
  const universal = engines.find(({ lanes }) => lanes === null)
  if (universal !== undefined) return [TAKE_ANY, [...hold, universal.engineId, after.lane, after.accountId]]
  return [TAKE_FITTING, [...hold, ...toOfferColumns(engines), maxOvertakes, after.accountId]]
}

/** Engine id, position among the engines, lane and rank, each as a list. */
function toOfferColumns(engines: readonly EngineOffer[]): unknown[][] {
  const offers = engines.flatMap(({ engineId, lanes }, place) =>
    (lanes ?? []).map(({ lane, rank }) => [engineId, place, lane, rank] as const),
  )
  return [0, 1, 2, 3].map((column) => offers.map((offer) => offer[column]))
}

/** What an earlier attempt showed is not listed from now on. */
async function toClaim(relaxed: Connected, held: Held, leaseId: string): Promise<Claim> {
  const row = held.slice(0, -DETAIL_COUNT) as unknown as JobRow
  const hold = { jobId: row[COLUMN.id], leaseId, expiresAt: row[COLUMN.expiresAt] }
  const [claim, earlier] = await Promise.all([
    readClaim(relaxed, held, leaseId),
    row[COLUMN.outputsReplaced] === 0 ? [] : unlistOutputs(relaxed, hold),
  ])
  return { ...claim, earlierOutputs: earlier.map(toOutput) }
}

async function readClaim(relaxed: Connected, held: Held, leaseId: string): Promise<Claim> {
  const row = held.slice(0, -DETAIL_COUNT) as unknown as JobRow
  const [needs, engineId, extraDataFlags, inputCount, engineLosses, workflow] = held.slice(
    -DETAIL_COUNT,
  ) as unknown as Details
  const hasCompanions = extraDataFlags !== 0 || inputCount !== 0
  const companions = hasCompanions ? await findCompanions(relaxed, row[COLUMN.id]) : NO_COMPANIONS
  return {
    job: toJob([row, null, null]),
    leaseId,
    engineId,
    needs,
    workflow: workflow ?? '',
    needsExtraData: (extraDataFlags & HAS_CREDENTIALS) !== 0,
    ...companions,
    earlierOutputs: [],
    engineLosses,
  }
}

type InputFields = [name: string, hash: string, sizeBytes: number, contentType: string]

const FIND_COMPANIONS = statement<[sealedExtraData: Uint8Array | null, notes: string | null, inputs: string | null]>(
  'jobs.find_companions',
  `SELECT (SELECT sealed FROM job_secret WHERE job_id = $1), (SELECT text FROM job_notes WHERE job_id = $1),
     (SELECT json_agg(json_build_array(name, hash, size_bytes, content_type) ORDER BY position)::text
      FROM job_input WHERE job_id = $1)`,
)

type Companions = Pick<Claim, 'sealedExtraData' | 'notes' | 'inputs'>

const NO_COMPANIONS: Companions = { sealedExtraData: null, notes: null, inputs: [] }

/** What lies beside the job until it ends. */
async function findCompanions(relaxed: Connected, jobId: string): Promise<Companions> {
  const [sealedExtraData = null, notes = null, inputs = null] = (await relaxed.get(FIND_COMPANIONS, [jobId])) ?? []
  return { sealedExtraData, notes, inputs: inputs === null ? [] : (JSON.parse(inputs) as InputFields[]).map(toInput) }
}

function toInput([name, hash, sizeBytes, contentType]: InputFields) {
  return { name, hash, sizeBytes, contentType }
}
