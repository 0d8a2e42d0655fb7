/** A job that an earlier result answers: queued and ended in one transaction. */
import type { KeyClaim } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { AnswerOutcome, NewJob, ResultAgain } from '../../../../../domain/jobs/job-store.ts'
import { toJob } from '../../../rows/jobs/job.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { claimKeys, findHolders } from '../../../stores/idempotency-store.ts'
import { findVisible, listOutputs } from '../../../stores/jobs/find-job.ts'
import { answerQueued, findAgain } from '../../../stores/jobs/kept-results.ts'
import { keepHooks } from '../../../stores/webhooks/keep-hook.ts'
import type { Connected } from '../../database/connections.ts'
import type { Queryable } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'
import { lockAccounts } from '../accounts/account-counters.ts'
import { findClosedPools } from '../accounts/deployment-rows.ts'
import { insertJobs, keepRecipes } from './insert-jobs.ts'
import { toHooks } from './submit-job.ts'

interface Answer {
  readonly job: NewJob
  readonly again: ResultAgain
  readonly claim: KeyClaim | null
  readonly recipe: RecipeFields | null
}

export async function answerAgain(durable: Connected, { job, ...rest }: Answer): Promise<AnswerOutcome> {
  // What only a run needs is left out: neither files nor notes are kept with it.
  const bare = { ...job, inputs: [], notes: null, sealedExtraData: null, needsExtraData: false, price: null }
  let isAgain = false
  return durable.transaction(
    async (tx) => {
      // When the connection broke at the commit, nobody knows whether it took effect.
      const ours = isAgain ? await findOurs(tx, job) : null
      isAgain = true
      return ours ?? answer(tx, { job: { ...bare, keepsResult: false }, ...rest })
    },
    { isRepeatable: true },
  )
}

async function findOurs(tx: Queryable, { id, accountId, createdAt }: NewJob): Promise<AnswerOutcome | null> {
  const row = await runOn(tx, findVisible(accountId, id, createdAt))
  return row === null ? null : { outcome: 'answered', job: toJob(row, await runOn(tx, listOutputs(row)), null) }
}

async function answer(tx: Queryable, { job, again, claim, recipe }: Answer): Promise<AnswerOutcome> {
  const { id, accountId, pool } = job
  // The lock comes first: each statement behind it sees what was committed before.
  const [closed, accounts, [holder = null]] = await Promise.all([
    findClosedPools(tx, [pool]),
    lockAccounts(tx, [accountId]),
    runOn(tx, findHolders(claim === null ? [] : [{ accountId, key: claim.key, now: claim.claimedAt }])),
  ])
  if (holder !== null) return { outcome: 'key_reused', holder }
  if (closed.has(pool)) return { outcome: 'pool_closed' }
  if (!accounts.has(accountId)) throw new Error(`No account ${accountId}.`)
  const found = await runOn(tx, findAgain(job, again))
  if (found === null) return { outcome: 'gone' }
  const claims =
    claim === null ? [] : [{ accountId, key: claim.key, now: claim.claimedAt, expiresAt: claim.expiresAt, jobId: id }]
  await Promise.all([
    runOn(tx, keepHooks(toHooks([job]))),
    insertJobs(tx, [job]),
    keepRecipes(tx, recipe === null ? [] : [{ accountId, recipe }]),
    runOn(tx, claimKeys(claims)),
  ])
  const [answered] = await runOn(tx, answerQueued([found]))
  if (answered === undefined) throw new Error(`No job ${id}.`)
  return { outcome: 'answered', job: answered }
}
