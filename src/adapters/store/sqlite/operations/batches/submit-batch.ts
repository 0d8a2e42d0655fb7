/**
 * Many submits of one account as one operation. What fits is decided before anything is written, because whatever else is in the
 * same transaction must not be undone with it.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyClaim } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { BatchOutcome, NewBatch } from '../../../../../domain/jobs/batches/batch-store.ts'
import type { ResultAgain } from '../../../../../domain/jobs/job-store.ts'
import { BATCH_COLUMNS, type BatchRow, fitBatch, toBatchRow } from '../../../rows/jobs/batch-row.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { prepareIsPoolClosed } from '../accounts/deployment-rows.ts'
import { prepareClaimKey, prepareFindHolder } from '../accounts/idempotency-keys.ts'
import { prepareAnswerQueued } from '../jobs/reuse-result.ts'
import { prepareKeepRecipe, SUBMIT, type Submit, toHold, toSubmitInput } from '../jobs/submit-job.ts'
import { prepareLedger } from '../ledger.ts'
import type { Packed } from '../packed.ts'
import { prepareRows } from '../statement.ts'
import { prepareKeepHook } from '../webhooks/endpoint-rows.ts'
import { prepareInsertJobs } from './insert-jobs.ts'

interface SubmitBatchInput {
  /** As it is when all of its jobs fit. */
  readonly row: BatchRow
  /** By job, its place. */
  readonly places: readonly number[]
  readonly jobs: readonly Packed<Submit>[]
  /** By job, a result that may answer it; null: none may answer any. */
  readonly again: readonly (ResultAgain | null)[] | null
  readonly key: string | null
  readonly keyExpiresAt: number
}

export function toSubmitBatchInput(
  batch: NewBatch,
  claim: KeyClaim | null,
  recipes: readonly (RecipeFields | null)[],
): SubmitBatchInput {
  return {
    row: toBatchRow(batch, batch.jobs.length, null),
    places: batch.jobs.map(({ index }) => index),
    jobs: batch.jobs.map(({ job }, index) => toSubmitInput(job, null, recipes[index] ?? null)),
    again: batch.jobs.some(({ job }) => job.again != null) ? batch.jobs.map(({ job }) => job.again ?? null) : null,
    key: claim === null ? null : claim.key,
    keyExpiresAt: claim === null ? 0 : claim.expiresAt.getTime(),
  }
}

export function prepareSubmitBatch(database: DatabaseSync): (input: SubmitBatchInput) => BatchOutcome {
  const findHolder = prepareFindHolder(database)
  const claimKey = prepareClaimKey(database)
  const isPoolClosed = prepareIsPoolClosed(database)
  const ledger = prepareLedger(database)
  const insertJobs = prepareInsertJobs(database)
  const keepRecipe = prepareKeepRecipe(database)
  const keepHook = prepareKeepHook(database)
  const answerQueued = prepareAnswerQueued(database)
  const findRoom = prepareRows<[room: number]>(database, 'SELECT max_queued - queued FROM account WHERE id = ?')
  const findSpare = prepareRows<[spare: number]>(
    database,
    'SELECT available - floor FROM credit_account WHERE account_id = ?',
  )
  const count = database.prepare('UPDATE account SET queued = queued + ?2 WHERE id = ?1')
  const insertBatch = database.prepare(`INSERT INTO job_batch (${BATCH_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)

  function fit(accountId: string, first: Submit, wanted: number) {
    const room = findRoom.get(accountId)
    if (room === undefined) throw new Error(`No account ${accountId}.`)
    const hold = toHold(first)
    const spare = hold === null || hold.micros === 0 ? undefined : findSpare.get(accountId)?.[0]
    const affordable = hold === null || spare === undefined ? Number.POSITIVE_INFINITY : Math.floor(spare / hold.micros)
    return fitBatch(wanted, { room: room[0], affordable })
  }

  /** The ids of those that are answered. */
  function answerAll(submits: readonly Submit[], again: readonly (ResultAgain | null)[]): readonly string[] {
    return submits.flatMap((submit, index) => {
      const found = again[index] ?? null
      return found !== null && answerQueued(submit, found) ? [submit.id] : []
    })
  }

  return ({ row, places, jobs, again, key, keyExpiresAt }) => {
    const [id, accountId, pool, createdAt, expiresAt, isWhole, digest, ids, refused] = row
    if (key !== null) {
      const holder = findHolder({ accountId, key, now: createdAt })
      if (holder !== null) return { outcome: 'key_reused', holder }
    }
    if (isPoolClosed(pool)) return { outcome: 'pool_closed' }
    const { accepted, limitedBy } = fit(accountId, SUBMIT.unpack(jobs[0]!), jobs.length)
    if (limitedBy !== null && (isWhole === 1 || accepted === 0)) return { outcome: limitedBy, room: accepted }
    count.run(accountId, accepted)
    const submits = jobs.slice(0, accepted).map(SUBMIT.unpack)
    for (const submit of submits) {
      const hold = toHold(submit)
      if (hold !== null) ledger.hold(hold)
      if (submit.hook !== null) keepHook(accountId, submit.hook, submit.createdAt)
      if (submit.recipe !== null) keepRecipe(accountId, submit.recipe)
    }
    insertJobs(submits)
    const kept = limitedBy === null ? ids : withoutPlaces(ids, places.slice(accepted))
    insertBatch.run(id, accountId, pool, createdAt, expiresAt, isWhole, digest, kept, refused, limitedBy)
    if (key !== null) claimKey({ accountId, key, expiresAt: keyExpiresAt, batchId: id })
    return { outcome: 'queued', accepted, limitedBy, ...(again !== null && { answered: answerAll(submits, again) }) }
  }
}

function withoutPlaces(ids: string, places: readonly number[]): string {
  const kept = JSON.parse(ids) as (string | null)[]
  for (const place of places) kept[place] = null
  return JSON.stringify(kept)
}
