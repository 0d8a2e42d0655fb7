/**
 * A job that an earlier result answers: queued and ended in one transaction. Whether the result is still whole is decided before
 * anything is written, under the locks of its outputs.
 */
import type { KeyClaim } from '../../../../domain/idempotency/idempotency-key.ts'
import type { AnswerOutcome, ResultAgain } from '../../../../domain/jobs/job-store.ts'
import { toJob } from '../../rows/jobs/job.ts'
import type { NewJobRow } from '../../rows/jobs/new-job.ts'
import { type Decided, decided, type Steps, sideBySide } from '../../statements/operation.ts'
import { findHolders } from '../idempotency-store.ts'
import { lockPurses } from '../ledger/holds.ts'
import { findVisible, listOutputs } from './find-job.ts'
import { answerQueued, findAgain } from './kept-results.ts'
import { accountOf, findClosedPools, type InsertJobs, lockAccounts, toClaims, writeJobs } from './new-jobs.ts'
import { lockBounds } from './run-bounds.ts'

function withoutPlace({ within = [], ...job }: NewJobRow): NewJobRow {
  const bounds = within.map(({ limits, ...bound }) => ({ ...bound, limits: { ...limits, inFlight: null } }))
  return { ...job, within: bounds }
}

export interface AnsweredJob {
  readonly job: NewJobRow
  readonly again: ResultAgain
  readonly claim: KeyClaim | null
}

/** `isAgain`: after a commit whose answer was lost, so that the job may be there. */
export function* answerAgain(
  { job: whole, again, claim }: AnsweredJob,
  insertJobs: InsertJobs,
  isAgain = false,
): Steps<Decided<AnswerOutcome>> {
  // What only a run needs is left out: neither files nor notes are kept with it.
  const bare = {
    inputs: [],
    notes: null,
    sealedExtraData: null,
    needsExtraData: false,
    price: null,
    keepsResult: false,
    notBefore: null,
  }
  const job = { ...whole, ...bare }
  const ours = isAgain ? yield* findVisible(job.accountId, job.id, job.createdAt) : null
  if (ours !== null) return decided({ outcome: 'answered', job: toJob(ours, yield* listOutputs(ours), null) })
  // The locks come first: each statement behind them sees what was committed before.
  const [closed, accounts, [holder = null], bounds] = yield* sideBySide(
    findClosedPools([job]),
    lockAccounts([job]),
    findHolders(toClaims(job, claim, {})),
    lockBounds([job]),
  )
  if (holder !== null) return decided({ outcome: 'key_reused', holder })
  if (closed.has(job.pool)) return decided({ outcome: 'pool_closed' })
  // It takes nobody's place.
  const excess = bounds.findExcess(withoutPlace(job))
  if (excess !== null) return decided({ outcome: 'out_of_bounds', excess })
  // It leaves the queue in the same transaction, so it needs no room in it.
  accountOf(accounts, job)
  const found = yield* findAgain(job, again)
  if (found === null) return decided({ outcome: 'gone' })
  const claims = toClaims(job, claim, { jobId: job.id })
  bounds.takeEnded(job)
  yield* writeJobs(insertJobs, { jobs: [job], claims, purses: yield* lockPurses([]) })
  yield* bounds.write()
  const [answered] = yield* answerQueued([found])
  if (answered === undefined) throw new Error(`No job ${job.id}.`)
  return decided({ outcome: 'answered', job: answered })
}
