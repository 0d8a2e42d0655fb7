/**
 * Many submits of one account in one transaction. Everything that decides is read under the lock of the account; what fits is then
 * found out as if one submit came after the other, and written.
 */
import type { KeyClaim } from '../../../../domain/idempotency/idempotency-key.ts'
import type { BatchLimit } from '../../../../domain/jobs/batches/batch.ts'
import type { BatchOutcome, NewBatch } from '../../../../domain/jobs/batches/batch-store.ts'
import type { ResultAgain } from '../../../../domain/jobs/job-store.ts'
import type { RunExcess } from '../../../../domain/jobs/limits/run-limits.ts'
import { type NewJobRow, toHold } from '../../rows/jobs/new-job.ts'
import { all, type Decided, decided, get, run, type Steps, sideBySide } from '../../statements/operation.ts'
import { command, insertInto, postgresOnly, query } from '../../statements/statement.ts'
import { jobBatch } from '../../tables/job-tables.ts'
import { encode, pick, type RowOf, shape, uuid } from '../../tables/table.ts'
import { findHolders } from '../idempotency-store.ts'
import { lockPurses, type Purses } from '../ledger/holds.ts'
import { answerQueued, type FoundResult, findAgain } from './kept-results.ts'
import { accountOf, findClosedPools, type InsertJobs, lockAccounts, toClaims, writeJobs } from './new-jobs.ts'
import { type Bounds, lockBounds } from './run-bounds.ts'

export interface SubmittedBatch extends Omit<NewBatch, 'jobs'> {
  readonly jobs: readonly { readonly index: number; readonly job: NewJobRow; readonly again: ResultAgain | null }[]
  readonly claim: KeyClaim | null
}

const INSERT = command('batches.insert', insertInto(jobBatch))
const FIND_OURS = query(
  'batches.findOurs',
  pick(jobBatch, 'jobIds', 'limitedBy'),
  postgresOnly('SELECT jobs, limited_by FROM job_batch WHERE id = :id'),
)
const FIND_ANSWERED = query(
  'batches.findAnswered',
  shape({ id: uuid() }),
  postgresOnly(
    'SELECT id FROM job_done WHERE id = ANY(:ids::uuid[]) AND expires_at = :expiresAt AND reused_from IS NOT NULL',
  ),
)

/** What an earlier try wrote. */
function* findOurs({ id, jobs }: SubmittedBatch): Steps<BatchOutcome | null> {
  const ours = yield* get(FIND_OURS, { id })
  if (ours === undefined) return null
  const accepted = ours.jobIds.filter((jobId) => jobId !== null).length
  const ids = jobs.map(({ job }) => job.id)
  const answered = yield* all(FIND_ANSWERED, { ids, expiresAt: jobs[0]!.job.expiresAt })
  return { outcome: 'queued', accepted, limitedBy: ours.limitedBy, answered: answered.map(({ id }) => id) }
}

/** `isAgain`: after a commit whose answer was lost, so that the batch may be there. */
export function* submitBatch(
  batch: SubmittedBatch,
  insertJobs: InsertJobs,
  isAgain = false,
): Steps<Decided<BatchOutcome>> {
  const ours = isAgain ? yield* findOurs(batch) : null
  if (ours !== null) return decided(ours)
  const { outcome, purses, bounds } = yield* decide(batch)
  if (outcome.outcome !== 'queued') return decided(outcome)
  const write = () => writeBatch(batch, insertJobs, { ...outcome, purses, bounds })
  if (batch.jobs.every(({ again }) => again === null)) return decided(outcome, write)
  // Written here, because what answers a job is written behind the job itself.
  const found: FoundResult[] = []
  for (const { job, again } of batch.jobs.slice(0, outcome.accepted)) {
    const whole = again === null ? null : yield* findAgain(job, again)
    if (whole !== null) found.push(whole)
  }
  yield* write()
  yield* answerQueued(found)
  return decided({ ...outcome, answered: found.map(({ job }) => job.id) })
}

interface Decision {
  readonly outcome: BatchOutcome
  readonly purses: Purses
  readonly bounds: Bounds
}

function* decide({ jobs: items, isWhole, claim }: SubmittedBatch): Steps<Decision> {
  const jobs = items.map(({ job }) => job)
  const [first] = jobs
  if (first === undefined) throw new Error('A batch has at least one job.')
  // The locks come first: each statement behind them sees what was committed before.
  const [closed, accounts, [holder = null], purses, bounds] = yield* sideBySide(
    findClosedPools([first]),
    lockAccounts([first]),
    findHolders(toClaims(first, claim, {})),
    lockPurses(jobs.map(toHold).filter((hold) => hold !== null)),
    lockBounds(jobs),
  )
  if (holder !== null) return { outcome: { outcome: 'key_reused', holder }, purses, bounds }
  if (closed.has(first.pool)) return { outcome: { outcome: 'pool_closed' }, purses, bounds }
  const { maxQueued, waiting } = accountOf(accounts, first)
  const { accepted, limitedBy, excess } = take(jobs, maxQueued - waiting, { purses, bounds })
  const isRefused = limitedBy !== null && (isWhole || accepted === 0)
  return {
    outcome: isRefused
      ? { outcome: limitedBy, room: accepted, ...(excess && { excess }) }
      : { outcome: 'queued', accepted, limitedBy },
    ...{ purses, bounds },
  }
}

interface Taken {
  readonly accepted: number
  readonly limitedBy: BatchLimit | null
  readonly excess?: RunExcess
}

/** How many of them fit, taken one after the other, and what keeps the next one out. */
function take(
  jobs: readonly NewJobRow[],
  room: number,
  { purses, bounds }: Pick<Decision, 'purses' | 'bounds'>,
): Taken {
  for (const [accepted, job] of jobs.entries()) {
    const excess = bounds.findExcess(job)
    if (excess !== null) return { accepted, limitedBy: excess.limit === 'spend' ? 'spend_limit' : 'run_limit', excess }
    const hold = toHold(job)
    if (hold !== null && !purses.canHold(hold)) return { accepted, limitedBy: 'insufficient_credits' }
    if (accepted >= room) return { accepted, limitedBy: 'queue_full' }
    if (hold !== null) purses.hold(hold)
    bounds.take(job)
  }
  return { accepted: jobs.length, limitedBy: null }
}

function* writeBatch(
  { id, isWhole, digest, total, refused, jobs: items, claim }: SubmittedBatch,
  insertJobs: InsertJobs,
  { accepted, limitedBy, purses, bounds }: Omit<Taken, 'excess'> & Pick<Decision, 'purses' | 'bounds'>,
): Steps<void> {
  const kept = items.slice(0, accepted)
  const jobs = kept.map(({ job }) => job)
  const { accountId, pool, createdAt, expiresAt } = jobs[0]!
  const jobIds: (string | null)[] = Array.from({ length: total }, () => null)
  for (const { index, job } of kept) jobIds[index] = job.id
  const row = { id, accountId, pool, createdAt, expiresAt, isWhole, digest, jobIds, refused, limitedBy }
  yield* sideBySide(
    writeJobs(insertJobs, { jobs, claims: toClaims(jobs[0]!, claim, { batchId: id }), purses }),
    insertBatch(row),
    bounds.write(),
  )
}

function* insertBatch(row: RowOf<typeof jobBatch>): Steps<void> {
  yield* run(INSERT, encode(jobBatch, row))
}
