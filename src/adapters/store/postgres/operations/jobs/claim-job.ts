/**
 * Claim: one statement finds the best candidate and takes it, guarded by its account's room. It looks at the first waiting job of
 * each (lane, account) and at nothing behind it, so a backlog costs nothing. Any number of nodes claim at the same time: a job that
 * another one is taking is passed over, and the limit of an account is checked on its newest row, so it is never exceeded. A claim
 * that lost such a race is tried again at once.
 */
import type { EngineOffer } from '../../../../../domain/engine/fleet/lane-offers.ts'
import { isStoreAway } from '../../../../../domain/errors.ts'
import type { Claim, ClaimRequest } from '../../../../../domain/jobs/job-store.ts'
import type { Connected } from '../../database/connections.ts'
import { statement } from '../../database/statement.ts'
import { type OutputRow, toOutput, unlistOutputs } from './job-outputs.ts'
import { COLUMN, HAS_CREDENTIALS, type JobRow, LIVE_COLUMNS, toJob } from './job-row.ts'

// Beyond this many waiting accounts in a lane a claim looks at a part of them, and the next claim at the part after that.
const MAX_HEADS = 128
const MAX_PARTS = 64
const MAX_RACES = 8
const MAX_TRIES = 3

const firstOf = (condition: string) => `
  SELECT seq, needs, account_id, priority FROM job
  WHERE status = 'queued' AND pool = $1 AND ${condition} AND expires_at > $5
  ORDER BY account_id, priority DESC, seq LIMIT 1`

// An engine that takes everything offers all lanes that wait, at the same rank.
const OFFERS = {
  any: 'SELECT $6::text, 1, lane.needs, 0 FROM lane',
  fitting: `SELECT o.engine, o.place, o.lane, o.rank
    FROM unnest($6::text[], $7::int[], $8::text[], $9::int[]) AS o(engine, place, lane, rank) JOIN lane ON lane.needs = o.lane`,
}

/**
 * `lane`: the lanes in which jobs wait, found by stepping from one to the next. `head`: the first job of every account in each of
 * them, found likewise; a job whose time is over is left to the sweep that ends it. `fit`: with every engine that serves it and
 * whose account has room. `near`: what priority and fair share leave of them: the accounts with the fewest running jobs, and of
 * those none that was served more recently than another by more claims than a job may be overtaken. Of the rest the best rank
 * wins, unless it lies further behind the oldest job than that.
 * `next` locks the chosen queue's first job that nobody else is taking, `room` counts it while there is room, `taken` starts it.
 * `mine`: this lease holds a job already, because the answer to an earlier try was lost.
 */
const take = (offers: string, { overtakes, after }: { readonly overtakes: string; readonly after: string }) => `
  WITH RECURSIVE
  mine AS MATERIALIZED (SELECT id FROM job WHERE lease_id = $3 AND status IN ('running', 'canceling') LIMIT 1),
  lane AS (
    (SELECT needs FROM job WHERE status = 'queued' AND pool = $1 AND NOT EXISTS (SELECT 1 FROM mine) ORDER BY needs LIMIT 1)
    UNION ALL
    SELECT further.needs FROM lane CROSS JOIN LATERAL (
      SELECT needs FROM job WHERE status = 'queued' AND pool = $1 AND needs > lane.needs ORDER BY needs LIMIT 1) AS further),
  offer(engine, place, lane, rank) AS MATERIALIZED (${offers}),
  head AS (
    SELECT first.*, 1 AS depth FROM (SELECT DISTINCT lane FROM offer) AS offered CROSS JOIN LATERAL (
      ${firstOf(`needs = offered.lane AND account_id > ${after}`)}) AS first
    UNION ALL
    SELECT further.*, head.depth + 1 FROM head CROSS JOIN LATERAL (
      ${firstOf('needs = head.needs AND account_id > head.account_id')}) AS further
    WHERE head.depth < ${MAX_HEADS}),
  fit AS (
    SELECT head.seq, head.needs, head.account_id, head.priority, load.running, load.served, offer.engine, offer.place, offer.rank,
      max(head.priority) OVER (PARTITION BY offer.engine, head.account_id) AS best_priority,
      min(load.running) OVER (PARTITION BY offer.engine) AS least_running,
      min(load.served) OVER (PARTITION BY offer.engine, load.running) AS least_served
    FROM head CROSS JOIN LATERAL (
      SELECT running, served FROM account_load
      WHERE account_load.account_id = head.account_id AND running < max_running OFFSET 0) AS load
    JOIN offer ON offer.lane = head.needs),
  near AS (
    SELECT *, min(seq) OVER (PARTITION BY engine) AS oldest FROM fit
    WHERE priority = best_priority AND running = least_running AND served <= least_served + ${overtakes}),
  pick AS MATERIALIZED (
    SELECT engine, needs, account_id FROM near WHERE seq <= oldest + ${overtakes} ORDER BY running, rank, seq, place LIMIT 1),
  next AS MATERIALIZED (
    SELECT chosen.id, pick.account_id, pick.engine FROM pick CROSS JOIN LATERAL (
      SELECT id FROM job
      WHERE status = 'queued' AND pool = $1 AND needs = pick.needs AND account_id = pick.account_id AND expires_at > $5
      ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED) AS chosen),
  room AS (
    UPDATE account_load AS load SET running = load.running + 1, started = load.started + 1, served = nextval('claim_turn')
    FROM next WHERE load.account_id = next.account_id AND load.running < load.max_running RETURNING load.account_id),
  taken AS (
    UPDATE job SET status = 'running', started_at = $5, lease_id = $3, lease_until = $4, worker_id = $2, engine_id = next.engine,
      attempt = attempt + 1, version = version + 1,
      outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0
    FROM next JOIN room USING (account_id) WHERE job.id = next.id RETURNING job.*),
  held AS (SELECT * FROM taken UNION ALL SELECT job.* FROM mine JOIN job USING (id))
  SELECT EXISTS (SELECT 1 FROM pick), (SELECT min(account_id) FROM head WHERE depth = ${MAX_HEADS}), held.*
  FROM (SELECT 1) AS one LEFT JOIN (
    SELECT ${LIVE_COLUMNS}, needs, engine_id, needs_extra_data, engine_losses,
      (SELECT workflow FROM job_text WHERE job_id = held.id AND expires_at = held.expires_at) AS workflow,
      CASE WHEN needs_extra_data & 1 <> 0 THEN (SELECT sealed FROM job_secret WHERE job_id = held.id) END AS sealed,
      CASE WHEN needs_extra_data & 2 <> 0 THEN (SELECT text FROM job_notes WHERE job_id = held.id) END AS notes,
      CASE WHEN input_count > 0 THEN (
        SELECT json_agg(json_build_array(name, hash, size_bytes, content_type) ORDER BY position)::text
        FROM job_input WHERE job_id = held.id) END AS inputs
    FROM held) AS held ON true`

type InputFields = [name: string, hash: string, sizeBytes: number, contentType: string]

type Details = readonly [
  needs: string,
  engineId: string,
  extraDataFlags: number,
  engineLosses: number,
  workflow: string | null,
  sealedExtraData: Uint8Array | null,
  notes: string | null,
  /** JSON: `InputFields` each. */
  inputs: string | null,
]

const DETAIL_COUNT = 8

/** The part about the job is all null where none was taken. */
type TakenRow = readonly [wasPicked: boolean, crowdedUntil: string | null, ...JobRow, ...Details]

const TAKE_ANY = statement<TakenRow>('jobs.claim_any', take(OFFERS.any, { overtakes: '0', after: '$7' }))
const TAKE_FITTING = statement<TakenRow>(
  'jobs.claim_fitting',
  take(OFFERS.fitting, { overtakes: '$10::int', after: '$11' }),
)

export type ClaimJob = (request: ClaimRequest) => Promise<Claim | null>

/** Remembers, for each pool that is crowded, where the next claim goes on. */
export function createClaimJob(relaxed: Connected): ClaimJob {
  const startOf = new Map<string, string>()

  return async (request) => {
    const { pool } = request
    const start = startOf.get(pool) ?? ''
    let after = start
    let races = 0
    for (let parts = 1; parts <= MAX_PARTS; ) {
      const [wasPicked, crowdedUntil, ...held] = await takeSurely(relaxed, request, after)
      if (held[COLUMN.id] !== null) {
        if (crowdedUntil === null) startOf.delete(pool)
        else startOf.set(pool, crowdedUntil)
        return toClaim(relaxed, held as unknown as Held, request.leaseId)
      }
      if (wasPicked) {
        races += 1
        if (races === MAX_RACES) return null
        continue
      }
      // Nobody in this part has both room and a job: on to the next part, at last to those before the first one.
      const isRound = after < start && (crowdedUntil ?? start) >= start
      if (isRound || (crowdedUntil === null && start === '')) break
      after = crowdedUntil ?? ''
      parts += 1
    }
    startOf.delete(pool)
    return null
  }
}

/** After a broken connection nobody knows whether something was taken: asked again, the same lease finds its job. */
async function takeSurely(relaxed: Connected, request: ClaimRequest, after: string): Promise<TakenRow> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await takeOnce(relaxed, request, after)
    } catch (error) {
      if (tries === MAX_TRIES || !isStoreAway(error)) throw error
    }
  }
}

async function takeOnce(relaxed: Connected, request: ClaimRequest, after: string): Promise<TakenRow> {
  const { pool, workerId, leaseId, leaseUntil, now, engines, maxOvertakes } = request
  const hold = [pool, workerId, leaseId, leaseUntil.getTime(), now.getTime()]
  const universal = engines.find(({ lanes }) => lanes === null)
  const row =
    universal === undefined
      ? await relaxed.get(TAKE_FITTING, [...hold, ...toOfferColumns(engines), maxOvertakes, after])
      : await relaxed.get(TAKE_ANY, [...hold, universal.engineId, after])
  if (row === undefined) throw new Error('A claim is always answered with a row.')
  return row
}

/** Engine id, position among the engines, lane and rank, each as a list. */
function toOfferColumns(engines: readonly EngineOffer[]): unknown[][] {
  const offers = engines.flatMap(({ engineId, lanes }, place) =>
    (lanes ?? []).map(({ lane, rank }) => [engineId, place, lane, rank] as const),
  )
  return [0, 1, 2, 3].map((column) => offers.map((offer) => offer[column]))
}

type Held = readonly [...JobRow, ...Details]

async function toClaim(relaxed: Connected, held: Held, leaseId: string): Promise<Claim> {
  const row = held.slice(0, -DETAIL_COUNT) as unknown as JobRow
  const details = held.slice(-DETAIL_COUNT) as unknown as Details
  const [needs, engineId, extraDataFlags, engineLosses, workflow, sealedExtraData, notes, inputs] = details
  const hold = { jobId: row[COLUMN.id], leaseId, expiresAt: row[COLUMN.expiresAt] }
  const earlier: readonly OutputRow[] = row[COLUMN.outputsReplaced] > 0 ? await unlistOutputs(relaxed, hold) : []
  return {
    job: toJob([row, null, null]),
    leaseId,
    engineId,
    needs,
    workflow: workflow ?? '',
    inputs: inputs === null ? [] : (JSON.parse(inputs) as InputFields[]).map(toInput),
    needsExtraData: (extraDataFlags & HAS_CREDENTIALS) !== 0,
    sealedExtraData,
    notes,
    earlierOutputs: earlier.map(toOutput),
    engineLosses,
  }
}

function toInput([name, hash, sizeBytes, contentType]: InputFields) {
  return { name, hash, sizeBytes, contentType }
}
