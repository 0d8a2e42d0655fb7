/**
 * Submit: idempotency key, credit hold, queue bound, job row and counters in one transaction. Submits of one turn of the event loop
 * travel together, two batches at a time, each as one pipeline: everything that decides is read under the locks of the accounts, the
 * submits are then decided here one after the other as if each were alone, and what is accepted is written by a few statements.
 */

import { jobHoldId } from '../../../../../domain/credits/ledger.ts'
import type { KeyClaim, KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { NewJob, SubmitOutcome } from '../../../../../domain/jobs/job-store.ts'
import { toQueuedJob } from '../../../../../domain/jobs/submit/submit-job.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { type ClaimedKey, claimKeys, findHolders } from '../../../stores/idempotency-store.ts'
import { type HoldInput, lockPurses, type Purses } from '../../../stores/ledger/holds.ts'
import { type KeptHook, keepHooks } from '../../../stores/webhooks/keep-hook.ts'
import type { Connected } from '../../database/connections.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'
import { type LockedAccount, lockAccounts, readStarted } from '../accounts/account-counters.ts'
import { findClosedPools } from '../accounts/deployment-rows.ts'
import { insertJobs, keepRecipes, type NewRecipe } from './insert-jobs.ts'
import { type QueuePlace, readNewPositions } from './queue-position.ts'

export interface Submit {
  readonly job: NewJob
  readonly recipe?: RecipeFields | null
  readonly claim: KeyClaim | null
}

/** The error concerns this submit alone. */
export type SubmitAnswer = SubmitOutcome | { readonly outcome: 'failed'; readonly error: Error }

// The row of the id is taken first and given back when the submit is refused for another reason: of two callers who choose the same
// id at the same time, of whatever accounts, the second waits for the first.
const CHOOSE = statement<[id: string]>(
  'jobs.choose_ids',
  `INSERT INTO job_id_chosen (id, expires_at)
   SELECT id, expires_at FROM unnest($1::uuid[], $2::bigint[]) AS chosen(id, expires_at)
   WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.id = chosen.id)
     AND NOT EXISTS (SELECT 1 FROM job_done WHERE job_done.id = chosen.id)
   ORDER BY id ON CONFLICT (id) DO NOTHING RETURNING id`,
)
const GIVE_BACK = statement('jobs.give_back_ids', 'DELETE FROM job_id_chosen WHERE id = ANY($1::uuid[])')
const FIND_OURS = statement<[id: string, accountId: string, createdAt: number]>(
  'jobs.find_ours',
  `SELECT id, account_id, created_at FROM job WHERE id = ANY($1::uuid[])
   UNION ALL SELECT id, account_id, created_at FROM job_done WHERE id = ANY($1::uuid[])`,
)

/** One answer for each, in their order. */
export async function submitTogether(durable: Connected, submits: readonly Submit[]): Promise<readonly SubmitAnswer[]> {
  let isAgain = false
  const { answers } = await durable.transaction(
    async (tx) => {
      // When the connection broke at the commit, nobody knows whether it took effect: then jobs of ours may be there.
      const known = await readKnown(tx, submits, { findsOurs: isAgain })
      isAgain = true
      return decide(submits, known)
    },
    { isRepeatable: true, last: writeAccepted },
  )
  return answers
}

function writeAccepted(tx: Queryable, { accepted, recipes, claims, unusedIds, purses }: Decision): Promise<unknown> {
  return Promise.all([
    // First: the endpoints that jobs bring must exist before the messages that the jobs are queued.
    runOn(tx, keepHooks(toHooks(accepted))),
    insertJobs(tx, accepted),
    keepRecipes(tx, recipes),
    runOn(tx, claimKeys(claims)),
    unusedIds.length > 0 && tx.run(GIVE_BACK, [unusedIds]),
    purses === null ? null : runOn(tx, purses.write()),
  ])
}

export function toHooks(jobs: readonly NewJob[]): readonly KeptHook[] {
  return jobs.flatMap(({ accountId, hook, createdAt }) => (hook == null ? [] : [{ accountId, hook, at: createdAt }]))
}

interface Known {
  readonly closedPools: ReadonlySet<string>
  readonly accounts: ReadonlyMap<string, LockedAccount>
  readonly started: ReadonlyMap<string, number>
  readonly holders: ReadonlyMap<Submit, KeyHolder>
  /** Ids chosen by callers that are free, and now theirs. */
  readonly chosen: readonly string[]
  readonly ours: ReadonlySet<Submit>
  readonly positionOf: (place: QueuePlace, waiting: number) => number
  /** null: nothing of the batch costs anything. */
  readonly purses: Purses | null
}

/** Everything that decides, sent at once. The locks come first: each statement behind them sees what was committed before it. */
async function readKnown(
  tx: Queryable,
  submits: readonly Submit[],
  { findsOurs }: { readonly findsOurs: boolean },
): Promise<Known> {
  const accountIds = [...new Set(submits.map(({ job }) => job.accountId))]
  const holds = submits.map(({ job }) => toHold(job)).filter((hold) => hold !== null)
  const [closedPools, accounts, started, holders, chosen, ours, positionOf, purses] = await Promise.all([
    findClosedPools(
      tx,
      submits.map(({ job }) => job.pool),
    ),
    lockAccounts(tx, accountIds),
    readStarted(tx, accountIds),
    findKeyHolders(tx, submits),
    chooseIds(tx, submits),
    findsOurs ? findOurs(tx, submits) : new Set<Submit>(),
    readNewPositions(
      tx,
      submits.map(({ job }) => job),
    ),
    holds.length === 0 ? null : runOn(tx, lockPurses(holds)),
  ])
  return { closedPools, accounts, started, holders, chosen, ours, positionOf, purses }
}

async function findKeyHolders(tx: Queryable, submits: readonly Submit[]): Promise<Map<Submit, KeyHolder>> {
  const keyed = submits.flatMap((submit) => (submit.claim === null ? [] : { submit, ...submit.claim }))
  const asked = keyed.map(({ submit, key, claimedAt }) => ({ accountId: submit.job.accountId, key, now: claimedAt }))
  const holders = await runOn(tx, findHolders(asked))
  const found = new Map<Submit, KeyHolder>()
  for (const [index, { submit }] of keyed.entries()) {
    const holder = holders[index] ?? null
    if (holder !== null) found.set(submit, holder)
  }
  return found
}

async function chooseIds(tx: Queryable, submits: readonly Submit[]): Promise<string[]> {
  const chosen = submits.map(({ job }) => job).filter(({ hasChosenId }) => hasChosenId === true)
  if (chosen.length === 0) return []
  const rows = await tx.all(CHOOSE, [chosen.map(({ id }) => id), chosen.map(({ expiresAt }) => expiresAt.getTime())])
  return rows.map(([id]) => id)
}

async function findOurs(tx: Queryable, submits: readonly Submit[]): Promise<Set<Submit>> {
  const rows = await tx.all(FIND_OURS, [submits.map(({ job }) => job.id)])
  const names = new Set(rows.map((row) => row.join(' ')))
  return new Set(
    submits.filter(({ job: { id, accountId, createdAt } }) => names.has(`${id} ${accountId} ${createdAt.getTime()}`)),
  )
}

export function toHold({ id, accountId, pool, keyId = null, price, createdAt }: NewJob): HoldInput | null {
  if (price == null) return null
  const labels = { pool, model: null, keyId }
  return { holdId: jobHoldId(id), accountId, micros: price.holdMicros, at: createdAt.getTime(), labels }
}

interface Decision {
  readonly answers: readonly SubmitAnswer[]
  readonly accepted: readonly NewJob[]
  readonly recipes: readonly NewRecipe[]
  readonly claims: readonly ClaimedKey[]
  /** Chosen ids of submits that were refused. */
  readonly unusedIds: readonly string[]
  readonly purses: Purses | null
}

function decide(submits: readonly Submit[], known: Known): Decision {
  const waiting = new Map<string, number>()
  for (const [id, { submitted }] of known.accounts) waiting.set(id, submitted - (known.started.get(id) ?? 0))
  const accepted: NewJob[] = []
  const recipes: NewRecipe[] = []
  const acceptedIds = new Set<string>()
  const claims = new Map<string, ClaimedKey>()
  const chosen = new Set(known.chosen)

  function findHolder(submit: Submit): KeyHolder | null {
    const { job, claim } = submit
    if (claim === null) return null
    const claimed = claims.get(`${job.accountId} ${claim.key}`)
    // Claimed a moment ago, by a submit before it in this batch.
    if (claimed !== undefined && claimed.expiresAt > claim.claimedAt)
      return { jobId: claimed.jobId ?? null, assetId: null }
    return known.holders.get(submit) ?? null
  }

  function refuse(submit: Submit, account: LockedAccount): SubmitAnswer | null {
    const { job } = submit
    if (acceptedIds.has(job.id) || (job.hasChosenId === true && !chosen.has(job.id))) return { outcome: 'id_taken' }
    const holder = findHolder(submit)
    if (holder !== null) return { outcome: 'key_reused', holder }
    if (known.closedPools.has(job.pool)) return { outcome: 'pool_closed' }
    const hold = toHold(job)
    if (hold !== null && known.purses?.canHold(hold) === false) return { outcome: 'insufficient_credits' }
    return (waiting.get(job.accountId) ?? 0) >= account.maxQueued ? { outcome: 'queue_full' } : null
  }

  function accept({ job, claim, recipe = null }: Submit): SubmitAnswer {
    const hold = toHold(job)
    if (hold !== null) known.purses?.hold(hold)
    if (claim !== null) claims.set(`${job.accountId} ${claim.key}`, toClaimedKey(job, claim))
    const nowWaiting = (waiting.get(job.accountId) ?? 0) + 1
    waiting.set(job.accountId, nowWaiting)
    accepted.push(job)
    if (recipe !== null) recipes.push({ accountId: job.accountId, recipe })
    acceptedIds.add(job.id)
    return { outcome: 'queued', job: toQueuedJob(job, known.positionOf(job, nowWaiting)) }
  }

  const answers = submits.map((submit): SubmitAnswer => {
    const { job } = submit
    const account = known.accounts.get(job.accountId)
    if (account === undefined) return { outcome: 'failed', error: new Error(`No account ${job.accountId}.`) }
    if (known.ours.has(submit)) {
      const position = Math.max(1, waiting.get(job.accountId) ?? 0)
      return { outcome: 'queued', job: toQueuedJob(job, position) }
    }
    return refuse(submit, account) ?? accept(submit)
  })
  const unusedIds = known.chosen.filter((id) => !acceptedIds.has(id))
  return { answers, accepted, recipes, claims: [...claims.values()], unusedIds, purses: known.purses }
}

function toClaimedKey({ id, accountId }: NewJob, { key, claimedAt, expiresAt }: KeyClaim): ClaimedKey {
  return { accountId, key, now: claimedAt, expiresAt, jobId: id }
}
