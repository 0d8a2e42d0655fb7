/**
 * A job that an earlier result answers. Whether that result is still whole is decided before anything is written, in the operation
 * that writes: nothing else can remove an output in between.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyClaim } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { AnswerOutcome, NewJob, ResultAgain } from '../../../../../domain/jobs/job-store.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { answerQueued, findAgain } from '../../../stores/jobs/kept-results.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'
import { prepareIsPoolClosed } from '../accounts/deployment-rows.ts'
import { prepareClaimKey, prepareFindHolder } from '../accounts/idempotency-keys.ts'
import { prepareInsertJobs } from '../batches/insert-jobs.ts'
import type { Packed } from '../packed.ts'
import { prepareKeepHook } from '../webhooks/endpoint-rows.ts'
import { prepareKeepRecipe, SUBMIT, type Submit, toSubmitInput } from './submit-job.ts'

function toJob({ id, accountId, createdAt, expiresAt }: Submit) {
  return { id, accountId, createdAt: new Date(createdAt), expiresAt: new Date(expiresAt) }
}

/** Ends a queued job with a result that is still whole; false: it is not, and the job stays as it is. */
export function prepareAnswerQueued(database: DatabaseSync): (submit: Submit, again: ResultAgain) => boolean {
  const db = openStatements(database)
  return (submit, again) => {
    const found = runOn(db, findAgain(toJob(submit), again))
    return found !== null && runOn(db, answerQueued([found])).length > 0
  }
}

interface AnswerInput {
  readonly submit: Packed<Submit>
  readonly again: ResultAgain
}

/** What only a run needs is left out: neither files nor notes are kept with it. */
export function toAnswerInput(
  job: NewJob,
  again: ResultAgain,
  { claim, recipe }: { readonly claim: KeyClaim | null; readonly recipe: RecipeFields | null },
): AnswerInput {
  const bare = { ...job, inputs: [], notes: null, sealedExtraData: null, needsExtraData: false, price: null }
  return { submit: toSubmitInput({ ...bare, keepsResult: false }, claim, recipe), again }
}

export function prepareAnswerAgain(database: DatabaseSync): (input: AnswerInput) => AnswerOutcome {
  const db = openStatements(database)
  const findHolder = prepareFindHolder(database)
  const claimKey = prepareClaimKey(database)
  const isPoolClosed = prepareIsPoolClosed(database)
  const insertJobs = prepareInsertJobs(database)
  const keepRecipe = prepareKeepRecipe(database)
  const keepHook = prepareKeepHook(database)
  // It leaves the queue in the same operation, so it needs no room in it.
  const count = database.prepare('UPDATE account SET queued = queued + 1 WHERE id = ?')
  return ({ submit: packed, again }) => {
    const submit = SUBMIT.unpack(packed)
    const { id, accountId, key, createdAt } = submit
    const holder = key === null ? null : findHolder({ accountId, key, now: submit.keyClaimedAt })
    if (holder !== null) return { outcome: 'key_reused', holder }
    if (isPoolClosed(submit.pool)) return { outcome: 'pool_closed' }
    const found = runOn(db, findAgain(toJob(submit), again))
    if (found === null) return { outcome: 'gone' }
    if (count.run(accountId).changes === 0) throw new Error(`No account ${accountId}.`)
    if (key !== null) claimKey({ accountId, key, expiresAt: submit.keyExpiresAt, jobId: id })
    if (submit.hook !== null) keepHook(accountId, submit.hook, createdAt)
    insertJobs([submit])
    if (submit.recipe !== null) keepRecipe(accountId, submit.recipe)
    const [job] = runOn(db, answerQueued([found]))
    if (job === undefined) throw new Error(`No job ${id}.`)
    return { outcome: 'answered', job }
  }
}
