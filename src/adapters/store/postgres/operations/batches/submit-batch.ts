/**
 * Many submits of one account in one transaction. Everything that decides is read under the lock of the account; what fits is then
 * found out here, as if one submit came after the other, and written by a few statements.
 */

import type { KeyClaim } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { BatchLimit } from '../../../../../domain/jobs/batches/batch.ts'
import type { BatchOutcome, NewBatch } from '../../../../../domain/jobs/batches/batch-store.ts'
import type { NewJob } from '../../../../../domain/jobs/job-store.ts'
import { BATCH_COLUMNS, toBatchRow } from '../../../rows/jobs/batch-row.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { claimKeys, findHolders } from '../../../stores/idempotency-store.ts'
import { answerQueued, type FoundResult, findAgain } from '../../../stores/jobs/kept-results.ts'
import { lockPurses, type Purses } from '../../../stores/ledger/holds.ts'
import { keepHooks } from '../../../stores/webhooks/keep-hook.ts'
import type { Connected } from '../../database/connections.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'
import { lockAccounts, readStarted } from '../accounts/account-counters.ts'
import { findClosedPools } from '../accounts/deployment-rows.ts'
import { insertJobs, keepRecipes } from '../jobs/insert-jobs.ts'
import { toHold, toHooks } from '../jobs/submit-job.ts'

const INSERT = statement(
  'batches.insert',
  `INSERT INTO job_batch (${BATCH_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
)
const FIND_OURS = statement<[jobs: string, limitedBy: BatchLimit | null]>(
  'batches.find_ours',
  'SELECT jobs, limited_by FROM job_batch WHERE id = $1',
)

const FIND_ANSWERED = statement<[jobId: string]>(
  'batches.find_answered',
  `SELECT id FROM job_done WHERE id = ANY($1::uuid[]) AND expires_at = $2 AND reused_from IS NOT NULL`,
)

interface Submitted {
  readonly batch: NewBatch
  readonly claim: KeyClaim | null
  readonly recipes: readonly (RecipeFields | null)[]
}

interface Decision {
  readonly outcome: BatchOutcome
  /** null: nothing is written, or it is written already. */
  readonly purses: Purses | null
}

export async function submitBatch(durable: Connected, submitted: Submitted): Promise<BatchOutcome> {
  let isAgain = false
  const { outcome } = await durable.transaction(
    async (tx): Promise<Decision> => {
      // When the connection broke at the commit, nobody knows whether it took effect.
      const ours = isAgain ? await findOurs(tx, submitted.batch) : null
      isAgain = true
      if (ours !== null) return ours
      const decision = await decide(tx, submitted)
      return submitted.batch.jobs.some(({ job }) => job.again != null) ? answer(tx, submitted, decision) : decision
    },
    { isRepeatable: true, last: (tx, decision) => write(tx, submitted, decision) },
  )
  return outcome
}

async function findOurs(tx: Queryable, batch: NewBatch): Promise<Decision | null> {
  const row = await tx.get(FIND_OURS, [batch.id])
  if (row === undefined) return null
  const accepted = (JSON.parse(row[0]) as (string | null)[]).filter((jobId) => jobId !== null).length
  const answered = await tx.all(FIND_ANSWERED, [
    batch.jobs.map(({ job }) => job.id),
    batch.jobs[0]!.job.expiresAt.getTime(),
  ])
  return {
    outcome: { outcome: 'queued', accepted, limitedBy: row[1], answered: answered.map(([jobId]) => jobId) },
    purses: null,
  }
}

async function decide(tx: Queryable, { batch, claim }: Submitted): Promise<Decision> {
  const jobs = batch.jobs.map(({ job }) => job)
  const { accountId, pool } = jobs[0]!
  const keys = claim === null ? [] : [{ accountId, key: claim.key, now: claim.claimedAt }]
  // The lock comes first: each statement behind it sees what was committed before.
  const [closed, accounts, started, holders, purses] = await Promise.all([
    findClosedPools(tx, [pool]),
    lockAccounts(tx, [accountId]),
    readStarted(tx, [accountId]),
    runOn(tx, findHolders(keys)),
    runOn(tx, lockPurses(jobs.map(toHold).filter((hold) => hold !== null))),
  ])
  const refused = (outcome: BatchOutcome): Decision => ({ outcome, purses: null })
  const [holder = null] = holders
  if (holder !== null) return refused({ outcome: 'key_reused', holder })
  if (closed.has(pool)) return refused({ outcome: 'pool_closed' })
  const account = accounts.get(accountId)
  if (account === undefined) throw new Error(`No account ${accountId}.`)
  const room = account.maxQueued - (account.submitted - (started.get(accountId) ?? 0))
  const { accepted, limitedBy } = take(jobs, room, purses)
  if (limitedBy !== null && (batch.isWhole || accepted === 0)) return refused({ outcome: limitedBy, room: accepted })
  return { outcome: { outcome: 'queued', accepted, limitedBy }, purses }
}

/** Writes everything here, because what answers a job is written behind the job itself. */
async function answer(tx: Queryable, submitted: Submitted, decision: Decision): Promise<Decision> {
  const { outcome } = decision
  if (outcome.outcome !== 'queued') return decision
  const jobs = submitted.batch.jobs.slice(0, outcome.accepted).map(({ job }) => job)
  const found: FoundResult[] = []
  for (const job of jobs) {
    const whole = job.again == null ? null : await runOn(tx, findAgain(job, job.again))
    if (whole !== null) found.push(whole)
  }
  await write(tx, submitted, decision)
  await runOn(tx, answerQueued(found))
  return { outcome: { ...outcome, answered: found.map(({ job }) => job.id) }, purses: null }
}

function take(
  jobs: readonly NewJob[],
  room: number,
  purses: Purses,
): { readonly accepted: number; readonly limitedBy: BatchLimit | null } {
  for (const [accepted, job] of jobs.entries()) {
    const hold = toHold(job)
    if (hold !== null && !purses.canHold(hold)) return { accepted, limitedBy: 'insufficient_credits' }
    if (accepted >= room) return { accepted, limitedBy: 'queue_full' }
    if (hold !== null) purses.hold(hold)
  }
  return { accepted: jobs.length, limitedBy: null }
}

async function write(
  tx: Queryable,
  { batch, claim, recipes }: Submitted,
  { outcome, purses }: Decision,
): Promise<void> {
  if (outcome.outcome !== 'queued' || purses === null) return
  const { accepted, limitedBy } = outcome
  const jobs = batch.jobs.slice(0, accepted).map(({ job }) => job)
  const { accountId } = jobs[0]!
  const kept = recipes.slice(0, accepted).flatMap((recipe) => (recipe === null ? [] : { accountId, recipe }))
  const claims =
    claim === null
      ? []
      : [{ accountId, key: claim.key, now: claim.claimedAt, expiresAt: claim.expiresAt, batchId: batch.id }]
  await Promise.all([
    runOn(tx, keepHooks(toHooks(jobs))),
    insertJobs(tx, jobs),
    keepRecipes(tx, kept),
    runOn(tx, claimKeys(claims)),
    runOn(tx, purses.write()),
    tx.run(INSERT, [...toBatchRow(batch, accepted, limitedBy)]),
  ])
}
