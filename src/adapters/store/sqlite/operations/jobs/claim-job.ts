/**
 * Claim: one statement finds the best candidate, guarded by its account's room. It looks at the head of each waiting queue and
 * at nothing behind it, so a backlog costs nothing. Where every engine runs everything the queues are the accounts; else they
 * are the lanes, and the statement matches their heads with what the engines offer to take.
 */

import type { DatabaseSync } from 'node:sqlite'
import type { EngineOffer } from '../../../../../domain/engine/fleet/lane-offers.ts'
import type { Claim, ClaimRequest } from '../../../../../domain/jobs/job-store.ts'
import { readOrigin } from '../../../../../domain/jobs/submit/job-origin.ts'
import { COLUMN, type JobRow, type OutputRow, type StoredJob, toJob, toOutput } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'
import { prepareOutputs } from './job-outputs.ts'
import { type CompleteJob, JOB_COLUMNS } from './job-row.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, KEEPS_RESULT } from './submit-job.ts'

type ClaimInput = readonly [
  pool: string,
  workerId: string,
  leaseId: string,
  leaseUntil: number,
  now: number,
  /** The id of an engine that takes everything, or null. */
  engineId: string | null,
  /** JSON: [engine id, position among the engines, lane, rank] each. */
  offers: string,
  maxOvertakes: number,
]

type InputFields = [name: string, hash: string, sizeBytes: number, contentType: string]

type ClaimAnswer =
  | readonly [
      job: StoredJob,
      workflow: string,
      inputs: readonly InputFields[],
      needsExtraData: boolean,
      sealedExtraData: Uint8Array | null,
      notes: string | null,
      needs: string,
      engineId: string,
      earlierOutputs: readonly OutputRow[],
      engineLosses: number,
      origin: string | null,
      keepsResult: boolean,
    ]
  | null

export function toClaimInput(request: ClaimRequest): ClaimInput {
  const { pool, workerId, leaseId, leaseUntil, now, engines, maxOvertakes } = request
  const universal = engines.find(({ lanes }) => lanes === null)
  const offers = universal === undefined ? JSON.stringify(engines.flatMap(toOfferRows)) : ''
  const engineId = universal?.engineId ?? null
  return [pool, workerId, leaseId, leaseUntil.getTime(), now.getTime(), engineId, offers, maxOvertakes]
}

type OfferRow = readonly [engineId: string, position: number, lane: string, rank: number]

function toOfferRows({ engineId, lanes }: EngineOffer, position: number): OfferRow[] {
  return (lanes ?? []).map(({ lane, rank }) => [engineId, position, lane, rank])
}

export function toClaim(answer: ClaimAnswer, leaseId: string): Claim | null {
  if (answer === null) return null
  const [job, workflow, inputs, needsExtraData, sealedExtraData, notes, needs, engineId, ...rest] = answer
  const [earlierOutputs, engineLosses, origin, keepsResult] = rest
  return {
    job: toJob(job),
    leaseId,
    engineId,
    needs,
    workflow,
    inputs: inputs.map(([name, hash, sizeBytes, contentType]) => ({ name, hash, sizeBytes, contentType })),
    needsExtraData,
    sealedExtraData,
    notes,
    earlierOutputs: earlierOutputs.map(toOutput),
    engineLosses,
    trace: readOrigin(origin).trace,
    ...(keepsResult && { keepsResult }),
  }
}

// What an earlier attempt showed is replaced by what this one makes.
const HOLD = `status = 'running', started_at = ?5, lease_id = ?3, lease_until = ?4, worker_id = ?2,
    attempt = attempt + 1, version = version + 1,
    outputs_replaced = outputs_replaced + output_count, output_count = 0, outputs_reused = 0`
const TERM_COLUMNS = 'needs_extra_data, input_count, needs, engine_id, engine_losses'
const RETURNING = `RETURNING ${JOB_COLUMNS}, ${TERM_COLUMNS}`

// A job whose time is over is left to the sweep that ends it. Of the accounts the one with the fewest running jobs comes first,
// then the one that was served longest ago: a long queue of one account does not hold up the first job of another.
const TAKE_ANY = `
  UPDATE job SET ${HOLD}, engine_id = ?6
  WHERE seq = (
    SELECT head FROM (
      SELECT running, served, (
        SELECT seq FROM job WHERE status = 'queued' AND account_id = account.id AND pool = ?1 AND expires_at > ?5
        ORDER BY priority DESC, seq LIMIT 1) AS head
      FROM account INDEXED BY account_waiting
      WHERE queued > 0 AND running < max_running)
    WHERE head IS NOT NULL ORDER BY running, served, head LIMIT 1)
  ${RETURNING}`

const firstOf = (condition: string, order: string) => `
  (SELECT next.seq FROM job AS next INDEXED BY job_lane
   WHERE next.status = 'queued' AND next.needs <> '' AND next.pool = ?1 AND next.expires_at > ?5 AND ${condition}
   ORDER BY ${order} next.priority DESC, next.seq LIMIT 1)`

/**
 * `head`: the first job of every lane, found by stepping from one to the next. `fit`: with every engine that serves it and
 * whose account has room. `near`: what priority and fair share leave of them: an account that was served more recently than
 * another by more claims than a job may be overtaken waits. Of those the best rank wins, unless it lies further behind the
 * oldest job than that.
 */
const TAKE_FITTING = `
  UPDATE job SET ${HOLD}, engine_id = pick.chosen_engine
  FROM (
    WITH RECURSIVE
      offer(engine, position, lane, rank) AS MATERIALIZED (
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?6)),
      head(seq, lane, account_id, priority) AS (
        SELECT seq, needs, account_id, priority FROM job
        WHERE seq = ${firstOf("next.needs > ''", 'next.needs, next.account_id,')}
        UNION ALL
        SELECT job.seq, job.needs, job.account_id, job.priority FROM head CROSS JOIN job WHERE job.seq = coalesce(
          ${firstOf('next.needs = head.lane AND next.account_id > head.account_id', 'next.account_id,')},
          ${firstOf('next.needs > head.lane', 'next.needs, next.account_id,')})),
      fit AS (
        SELECT head.seq, offer.engine, offer.position, offer.rank, head.priority, account.running,
          max(head.priority) OVER (PARTITION BY offer.engine, head.account_id) AS best_priority,
          min(account.running) OVER (PARTITION BY offer.engine) AS least_running, account.served,
          min(account.served) OVER (PARTITION BY offer.engine, account.running) AS least_served
        FROM head CROSS JOIN account ON account.id = head.account_id AND account.running < account.max_running
          CROSS JOIN offer ON offer.lane = head.lane),
      near AS (
        SELECT *, min(seq) OVER (PARTITION BY engine) AS oldest FROM fit
        WHERE priority = best_priority AND running = least_running AND served <= least_served + ?7)
    SELECT seq AS chosen_seq, engine AS chosen_engine FROM near WHERE seq <= oldest + ?7
    ORDER BY running, rank, seq, position LIMIT 1) AS pick
  WHERE job.seq = pick.chosen_seq
  ${RETURNING}`

type Terms = [extraDataFlags: number, inputCount: number, needs: string, engineId: string, engineLosses: number]
type TakenRow = [...JobRow, ...Terms]
const TERM_COUNT = 5

interface HeldTerms {
  readonly row: JobRow
  readonly terms: Terms
}

/** Reads what lies beside a job that is held. */
function prepareCompanions(database: DatabaseSync) {
  const selectWorkflow = prepareRows<[string]>(database, 'SELECT text FROM job_workflow WHERE seq = ?')
  const selectInputs = prepareRows<InputFields>(
    database,
    'SELECT name, hash, size_bytes, content_type FROM job_input WHERE seq = ? ORDER BY position',
  )
  // Credentials and notes stay until the job ends: a later attempt needs them too.
  const selectSecret = prepareRows<[Uint8Array]>(database, 'SELECT sealed FROM job_secret WHERE seq = ?')
  const selectNotes = prepareRows<[string]>(database, 'SELECT text FROM job_notes WHERE seq = ?')
  return ({ row: [seq], terms: [extraDataFlags, inputCount] }: HeldTerms) => {
    const needsExtraData = (extraDataFlags & HAS_CREDENTIALS) !== 0
    const hasNotes = (extraDataFlags & HAS_NOTES) !== 0
    return [
      selectWorkflow.get(seq)?.[0] ?? '',
      inputCount === 0 ? [] : selectInputs.all(seq),
      needsExtraData,
      needsExtraData ? (selectSecret.get(seq)?.[0] ?? null) : null,
      hasNotes ? (selectNotes.get(seq)?.[0] ?? null) : null,
    ] as const
  }
}

/** What is kept of its submit, where a trace is among that. */
function prepareTracedOrigin(database: DatabaseSync): (held: HeldTerms) => string | null {
  const select = prepareRows<[string]>(database, 'SELECT origin FROM job_workflow WHERE seq = ?')
  return ({ row: [seq], terms: [flags] }) => ((flags & HAS_TRACE) === 0 ? null : (select.get(seq)?.[0] ?? null))
}

function toHeldTerms(taken: TakenRow): HeldTerms {
  return { row: taken.slice(0, -TERM_COUNT) as unknown as JobRow, terms: taken.slice(-TERM_COUNT) as Terms }
}

/** Numbers every claim. */
interface ClaimTurns {
  last: number
}

export function createClaimTurns(database: DatabaseSync): ClaimTurns {
  const [[last]] = prepareRows<[number]>(database, 'SELECT coalesce(max(served), 0) FROM account').all()
  return { last }
}

export function prepareClaim(
  database: DatabaseSync,
  { completeJob, turns }: { readonly completeJob: CompleteJob; readonly turns: ClaimTurns },
): (input: ClaimInput) => ClaimAnswer {
  const takeAny = prepareRows<TakenRow>(database, TAKE_ANY)
  const takeFitting = prepareRows<TakenRow>(database, TAKE_FITTING)
  const takeRoom = database.prepare(`
    UPDATE account SET queued = queued - 1, running = running + 1, served = ? WHERE id = ? AND running < max_running`)
  const companionsOf = prepareCompanions(database)
  const originOf = prepareTracedOrigin(database)
  const selectOutputs = prepareOutputs(database)
  const dropOutputs = database.prepare('DELETE FROM job_output WHERE seq = ?')

  function take([pool, workerId, leaseId, leaseUntil, now, engineId, offers, maxOvertakes]: ClaimInput) {
    const hold = [pool, workerId, leaseId, leaseUntil, now] as const
    const taken = engineId === null ? takeFitting.get(...hold, offers, maxOvertakes) : takeAny.get(...hold, engineId)
    if (taken === undefined) return null
    const held = toHeldTerms(taken)
    const [, id, accountId] = held.row
    turns.last += 1
    if (takeRoom.run(turns.last, accountId).changes !== 1)
      throw new Error(`Account ${accountId} has no room for job ${id}.`)
    return held
  }

  function answer(held: HeldTerms | null): ClaimAnswer {
    if (held === null) return null
    const { row } = held
    const [flags, , needs, chosenEngine, engineLosses] = held.terms
    const [seq] = row
    const earlierOutputs = row[COLUMN.outputsReplaced] > 0 ? selectOutputs(seq) : []
    if (earlierOutputs.length > 0) dropOutputs.run(seq)
    const companions = companionsOf(held)
    const rest = [earlierOutputs, engineLosses, originOf(held), (flags & KEEPS_RESULT) !== 0] as const
    return [completeJob(row), ...companions, needs, chosenEngine, ...rest]
  }

  return (input) => answer(take(input))
}

export function prepareFindClaim(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (leaseId: string) => ClaimAnswer {
  const select = prepareRows<TakenRow>(
    database,
    `SELECT ${JOB_COLUMNS}, ${TERM_COLUMNS} FROM job INDEXED BY job_lease
     WHERE status IN ('running', 'canceling') AND lease_id = ?`,
  )
  const companionsOf = prepareCompanions(database)
  const originOf = prepareTracedOrigin(database)
  return (leaseId) => {
    const found = select.get(leaseId)
    if (found === undefined) return null
    const held = toHeldTerms(found)
    const [flags, , needs, engineId, engineLosses] = held.terms
    const rest = [[], engineLosses, originOf(held), (flags & KEEPS_RESULT) !== 0] as const
    return [completeJob(held.row), ...companionsOf(held), needs, engineId, ...rest]
  }
}
