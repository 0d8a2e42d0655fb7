/** The life of leases: renewed in one statement, given back by a worker that drains, taken back when they have run out. */
import type { JobError } from '../../../../domain/jobs/job.ts'
import type { JobStore, Lease, ReturnedLease, TouchedJob } from '../../../../domain/jobs/job-store.ts'
import { type GpuUse, unseenUse } from '../../../../domain/jobs/run/gpu-use.ts'
import { afterLapse, afterReturn, type JobStatus, mustMove } from '../../../../domain/jobs/transitions.ts'
import { ATTEMPTS_LENGTH, type AttemptEnd } from '../../rows/jobs/attempt-fields.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { command, postgresOnly, query, sqliteOnly, toRows } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { integer, moment, nullable, pick, type RowOf, shape, text } from '../../tables/table.ts'
import { MAX_ADOPTIONS_MS } from './adopt-run.ts'
import { endJobs, type JobEnd } from './end-jobs.ts'
import { chargeWhatRan } from './fair-share.ts'
import { noteGpuUse } from './gpu-use.ts'

const LEASES = { job_id: 'text', held_by: 'text' } as const
const toLeases = (leases: readonly Lease[]) =>
  toRows(
    'leases',
    leases.map(({ jobId, leaseId }) => ({ job_id: jobId, held_by: leaseId })),
  )
const IS_HELD = `lease_id = held_by AND status IN ('running', 'canceling')`

const renewed = pick(jobRow, 'id', 'status')
const RENEW = query('leases.renew', renewed, (words) =>
  words.either(
    `UPDATE job SET lease_until = :until FROM ${words.rows(':leases', LEASES)} AS lease WHERE job.id = job_id AND ${IS_HELD}
     RETURNING ${renewed.columns}`,
    `WITH held AS MATERIALIZED (
       SELECT job.id AS held_id FROM ${words.rows(':leases', LEASES)} AS lease JOIN job ON job.id = job_id::uuid WHERE ${IS_HELD}
       ORDER BY job.id FOR NO KEY UPDATE OF job)
     UPDATE job SET lease_until = :until FROM held WHERE id = held_id RETURNING ${renewed.columns}`,
  ),
)

type RenewedJob = Awaited<ReturnType<JobStore['renew']>>[number]

/** The jobs that are still held, with their status: a cancel may have come. */
export function* renewLeases(leases: readonly Lease[], until: Date): Steps<RenewedJob[]> {
  if (leases.length === 0) return []
  return (yield* all(RENEW, { ...toLeases(leases), until })).map(({ id, status }) => ({ jobId: id, status }))
}

const held = shape({
  ...pick(jobRow, 'seq', 'id', 'accountId', 'pool', 'status', 'attempt', 'startedAt').fields,
  foreseenMs: nullable(integer()),
  engineId: nullable(text()),
  leaseUntil: nullable(moment()),
})
type HeldJob = RowOf<typeof held>

const LOCK_HELD = query('leases.lockHeld', held, (words) =>
  words.either(
    `SELECT ${held.columns} FROM ${words.rows(':leases', LEASES)} AS lease JOIN job ON job.id = job_id WHERE ${IS_HELD}`,
    `SELECT ${held.columns} FROM ${words.rows(':leases', LEASES)} AS lease JOIN job ON job.id = job_id::uuid WHERE ${IS_HELD}
     ORDER BY job.id FOR NO KEY UPDATE OF job`,
  ),
)

interface Returned {
  readonly job: HeldJob
  readonly to: 'queued' | 'canceled' | 'failed'
  readonly why: AttemptEnd
  readonly error: JobError | null
  /** The attempt counts; else it is given back with the job. */
  readonly isSpent: boolean
  readonly isEngineLoss: boolean
  /** Above 0: it goes behind all that wait, and its account is as if it had been served so many claims later. */
  readonly spentTurns: number
  readonly gpu: GpuUse | null
}

/** Gives jobs back, without spending an attempt unless the lease says so; a canceling one ends. `lastTurn`: of claims, in SQLite. */
export function* releaseLeases(leases: readonly ReturnedLease[], now: Date, lastTurn: number): Steps<TouchedJob[]> {
  if (leases.length === 0) return []
  const found = new Map((yield* all(LOCK_HELD, toLeases(leases))).map((job) => [job.id, job]))
  const returned = [...new Map(leases.map((lease) => [lease.jobId, lease])).values()].flatMap((lease): Returned[] => {
    const job = found.get(lease.jobId)
    if (job === undefined) return []
    const { isSpent = false, isEngineLoss = false, spentTurns = 0, gpu = null } = lease
    const why = isEngineLoss ? 'engine_fault' : isSpent ? 'engine_lost' : 'returned'
    return [{ job, to: afterReturn(job.status), why, error: null, isSpent, isEngineLoss, spentTurns, gpu }]
  })
  return yield* giveBack(returned, now, lastTurn)
}

// On a server bounded by its own clock: a node whose clock is ahead cannot take a lease that is alive. Held jobs are few, so they
// are walked; one that is just being renewed, ended or reaped elsewhere is passed over.
const LOCK_LAPSED = query('leases.lockLapsed', held, (words) => {
  const isSpared = `${words.isIn("coalesce(engine_id, '')", ':spared')} AND coalesce(adoptions_over_at, 0) < :wornAt`
  return words.either(
    `SELECT ${held.columns} FROM job
      WHERE status IN ('running', 'canceling') AND lease_until < :lapsedBefore AND NOT (${isSpared})
      ORDER BY lease_until LIMIT :limit`,
    `SELECT ${held.columns} FROM job
      WHERE status IN ('running', 'canceling')
        AND lease_until < least(:lapsedBefore::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AND NOT (${isSpared})
      ORDER BY lease_until LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED`,
  )
})

interface Reap {
  readonly now: Date
  readonly lapsedBefore: Date
  readonly maxAttempts: number
  readonly error: JobError
  readonly spared: readonly string[]
}

/** Takes back the leases that ran out, at most `limit`: requeued with the next attempt, or ended once the attempts are spent. */
export function* reapLeases(
  { now, lapsedBefore, maxAttempts, error, spared }: Reap,
  limit: number,
): Steps<TouchedJob[]> {
  const lapsed = yield* all(LOCK_LAPSED, {
    lapsedBefore,
    limit,
    spared,
    wornAt: new Date(now.getTime() + MAX_ADOPTIONS_MS),
  })
  const returned = lapsed.map((job): Returned => {
    const to = afterLapse(job.status, job.attempt >= maxAttempts)
    const lost = { isSpent: true, isEngineLoss: false, spentTurns: 0 }
    // Until then its process lived.
    const until = new Date(Math.min(now.getTime(), (job.leaseUntil ?? now).getTime()))
    return { job, to, why: 'worker_lost', error: to === 'failed' ? error : null, ...lost, gpu: unseenUse(job, until) }
  })
  return yield* giveBack(returned, now, 0)
}

const LOCK_LOADS = command(
  'leases.lockLoads',
  postgresOnly('SELECT 1 FROM account_load WHERE account_id = ANY(:accountIds) ORDER BY account_id FOR NO KEY UPDATE'),
)
const BACK = {
  id: 'text',
  account_id: 'text',
  refunded: 'integer',
  losses: 'integer',
  why: 'text',
  turns: 'integer',
} as const
const touched = pick(jobRow, 'seq', 'id', 'version')
// A held job goes back to its former position in the queue, also beyond the bound of the queue: it was accepted once.
const REQUEUE = query('leases.requeue', touched, (words) =>
  words.either(
    `UPDATE job SET status = 'queued', lease_id = NULL, lease_until = NULL, run_id = NULL, attempt = attempt - refunded,
       engine_losses = engine_losses + losses, version = version + 1,
       attempts = iif(length(coalesce(attempts, '')) < ${ATTEMPTS_LENGTH}, json_insert(coalesce(attempts, '[]'), '$[#]',
         json_array(attempt, engine_id, started_at, :at, why)), attempts)
     FROM ${words.rows(':back', BACK)} AS given WHERE job.id = given.id RETURNING ${touched.columns}`,
    `WITH back AS (
       UPDATE job SET status = 'queued', lease_id = NULL, lease_until = NULL, run_id = NULL, attempt = job.attempt - refunded,
         engine_losses = engine_losses + losses, version = version + 1,
         seq = CASE WHEN turns > 0 THEN nextval(pg_get_serial_sequence('job', 'seq')) ELSE seq END,
         attempts = CASE WHEN length(coalesce(attempts, '')) < ${ATTEMPTS_LENGTH} THEN (coalesce(attempts, '[]')::jsonb
           || jsonb_build_array(jsonb_build_array(job.attempt, engine_id, started_at, :at::bigint, why)))::text ELSE attempts END
       FROM ${words.rows(':back', BACK)} AS given WHERE job.id = given.id::uuid
       RETURNING seq, job.id, job.account_id, version, turns),
     counted AS (
       UPDATE account_load AS load SET running = load.running - change.jobs, started = load.started - change.jobs,
         served = CASE WHEN change.turns > 0 THEN nextval('claim_turn') + change.turns ELSE load.served END
       FROM (SELECT account_id, count(*) AS jobs, max(turns) AS turns FROM back GROUP BY account_id) AS change
       WHERE load.account_id = change.account_id)
     SELECT seq, id, version FROM back`,
  ),
)
const COUNT_BACK = command('leases.countBack', (words) =>
  words.dialect === 'postgres'
    ? null
    : `UPDATE account SET queued = queued + change.jobs, running = running - change.jobs,
         served = iif(change.turns > 0, :lastTurn + change.turns, served)
       FROM (SELECT account_id, count(*) AS jobs, max(turns) AS turns FROM ${words.rows(':back', BACK)} GROUP BY account_id) AS change
       WHERE account.id = change.account_id`,
)

function* giveBack(returned: readonly Returned[], now: Date, lastTurn: number): Steps<TouchedJob[]> {
  if (returned.length === 0) return []
  yield* run(LOCK_LOADS, { accountIds: returned.map(({ job }) => job.accountId) })
  const versions = yield* requeue(returned, now, lastTurn)
  const ends = returned.flatMap(({ job: { id, status: from }, to, error, isSpent, gpu }): JobEnd[] =>
    to === 'queued' ? [] : [{ id, from, to, at: now, error, isLost: isSpent, gpu }],
  )
  for (const { id, version } of yield* endJobs(ends)) versions.set(id, version)
  return returned.map(({ job: { id, accountId }, to }) => ({
    ...{ jobId: id, accountId, version: versions.get(id) ?? 0, status: to as JobStatus },
  }))
}

function* requeue(returned: readonly Returned[], at: Date, lastTurn: number): Steps<Map<string, number>> {
  const returning = returned.filter(({ to }) => to === 'queued')
  if (returning.length === 0) return new Map()
  for (const { job } of returning) mustMove(job.status, 'queued')
  const back = toRows(
    'back',
    returning.map(({ job, isSpent, isEngineLoss, why, spentTurns }) => ({
      ...{ id: job.id, account_id: job.accountId, refunded: isSpent ? 0 : 1, losses: Number(isEngineLoss), why },
      turns: spentTurns,
    })),
  )
  const requeued = yield* all(REQUEUE, { ...back, at })
  yield* run(COUNT_BACK, { ...back, lastTurn })
  yield* chargeWhatRan(returning.map(({ job, spentTurns }) => ({ ...job, endedAt: at, isBehind: spentTurns > 0 })))
  yield* noteGpuUse(returning.map(({ job, gpu }) => ({ ...job, endedAt: at, gpu })))
  for (const { job, spentTurns } of returning) if (spentTurns > 0) yield* moveBehind(job.seq)
  return new Map(requeued.map(({ id, version }) => [id, version]))
}

const LAST_SEQ = query('leases.lastSeq', shape({ last: integer() }), sqliteOnly('SELECT max(seq) AS last FROM job'))
const SEQ_TABLES = [
  ...[
    'job',
    'job_workflow',
    'job_input',
    'job_output',
    'job_log',
    'job_secret',
    'job_notes',
    'job_submission',
    'job_run',
  ],
  'job_hidden',
]
const MOVES = SEQ_TABLES.map((table) =>
  command(`leases.move.${table}`, sqliteOnly(`UPDATE ${table} SET seq = :to WHERE seq = :from`)),
)

/** In SQLite: puts a waiting job behind all others, with everything that is kept under its number. */
function* moveBehind(from: number): Steps<void> {
  const last = (yield* get(LAST_SEQ))?.last ?? 0
  if (last > from) for (const move of MOVES) yield* run(move, { from, to: last + 1 })
}
