/**
 * Submit: idempotency key, credit hold, queue bound, job row and counters in one transaction. The most frequent write, so it
 * runs few statements.
 */

import type { DatabaseSync } from 'node:sqlite'
import { jobHoldId } from '../../../../../domain/credits/ledger.ts'
import type { KeyClaim, KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { NewJob, SubmitOutcome } from '../../../../../domain/jobs/job-store.ts'
import { writeOrigin } from '../../../../../domain/jobs/submit/job-origin.ts'
import { toQueuedJob } from '../../../../../domain/jobs/submit/submit-job.ts'
import type { NewHook } from '../../../../../domain/webhooks/webhook.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, KEEPS_RESULT } from '../../../rows/jobs/job.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { type SubmissionRow, toSubmissionRow } from '../../../rows/jobs/recorded-job.ts'
import type { HoldInput } from '../../../stores/ledger/holds.ts'
import { findPositions } from '../../../stores/queue-positions.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'
import { prepareIsPoolClosed } from '../accounts/deployment-rows.ts'
import { prepareClaimKey, prepareFindHolder } from '../accounts/idempotency-keys.ts'
import { prepareLedger } from '../ledger.ts'
import { createPacking, type Packed } from '../packed.ts'
import { prepareRows } from '../statement.ts'
import { prepareKeepHook } from '../webhooks/endpoint-rows.ts'
import { FOLLOWED, prepareTellQueued } from '../webhooks/tell-queued.ts'

type InputFields = readonly [name: string, hash: string, sizeBytes: number, contentType: string]
type PriceFields = readonly [perSecondMicros: number, minimumMicros: number, holdMicros: number]

export interface Submit {
  readonly id: string
  readonly accountId: string
  readonly pool: string
  readonly priority: number
  readonly createdAt: number
  readonly expiresAt: number
  readonly metadata: string | null
  readonly workflow: string
  readonly inputs: readonly InputFields[]
  readonly extraDataFlags: number
  readonly sealedExtraData: Uint8Array | null
  readonly key: string | null
  readonly keyClaimedAt: number
  readonly keyExpiresAt: number
  readonly price: PriceFields | null
  /** The API key that it came with. */
  readonly keyId: string | null
  readonly hasChosenId: boolean
  readonly submission: SubmissionRow | null
  readonly needs: string
  readonly notes: string | null
  readonly recipe: RecipeFields | null
  readonly title: string | null
  readonly origin: string | null
  readonly hook: NewHook | null
}

/** The queue position, the holder of the key, null when the queue is full, or why there is no job. */
type SubmitAnswer = number | KeyHolder | null | 'insufficient_credits' | typeof ID_TAKEN | typeof POOL_CLOSED

const ID_TAKEN = 'id_taken'
const POOL_CLOSED = 'pool_closed'

export const SUBMIT = createPacking<Submit>({
  ...{ id: true, accountId: true, pool: true, priority: true, createdAt: true, expiresAt: true, metadata: true },
  ...{ workflow: true, inputs: true, extraDataFlags: true, sealedExtraData: true, submission: true, notes: true },
  ...{ key: true, keyClaimedAt: true, keyExpiresAt: true, price: true, hasChosenId: true, needs: true },
  ...{ recipe: true, keyId: true, title: true, origin: true, hook: true },
})

export function toSubmitInput(job: NewJob, claim: KeyClaim | null, recipe: RecipeFields | null): Packed<Submit> {
  const {
    id,
    accountId,
    pool,
    priority,
    workflow,
    needs,
    sealedExtraData,
    price = null,
    notes = null,
    hook = null,
  } = job
  const metadata = JSON.stringify(job.metadata)
  return SUBMIT.pack({
    ...{ id, accountId, pool, priority, workflow, needs, sealedExtraData, notes, recipe, hook },
    createdAt: job.createdAt.getTime(),
    expiresAt: job.expiresAt.getTime(),
    metadata: metadata === '{}' ? null : metadata,
    inputs: job.inputs.map(({ name, hash, sizeBytes, contentType }) => [name, hash, sizeBytes, contentType]),
    extraDataFlags: toFlags(job),
    key: claim === null ? null : claim.key,
    keyClaimedAt: claim === null ? 0 : claim.claimedAt.getTime(),
    keyExpiresAt: claim === null ? 0 : claim.expiresAt.getTime(),
    keyId: price === null ? null : (job.keyId ?? null),
    price: price === null ? null : [price.perSecondMicros, price.minimumMicros, price.holdMicros],
    hasChosenId: job.hasChosenId === true,
    submission: job.submission == null ? null : toSubmissionRow(job.submission),
    title: job.recipe?.title ?? null,
    origin: job.origin == null ? null : writeOrigin(job.origin),
  })
}

function toFlags({ needsExtraData, notes = null, origin, keepsResult = false }: NewJob): number {
  const extra = (needsExtraData ? HAS_CREDENTIALS : 0) | (notes === null ? 0 : HAS_NOTES)
  return extra | (origin?.trace == null ? 0 : HAS_TRACE) | (keepsResult ? KEEPS_RESULT : 0)
}

export function toSubmitOutcome(job: NewJob, answer: SubmitAnswer): SubmitOutcome {
  if (answer === null) return { outcome: 'queue_full' }
  if (answer === 'insufficient_credits' || answer === ID_TAKEN || answer === POOL_CLOSED) return { outcome: answer }
  if (typeof answer !== 'number') return { outcome: 'key_reused', holder: answer }
  return { outcome: 'queued', job: toQueuedJob(job, answer) }
}

export function prepareSubmit(database: DatabaseSync): (input: Packed<Submit>) => SubmitAnswer {
  const findHolder = prepareFindHolder(database)
  const claimKey = prepareClaimKey(database)
  const takeQueueRoom = prepareTakeQueueRoom(database)
  const ledger = prepareLedger(database)
  const insertJob = prepareInsertJob(database)
  const newestPosition = prepareNewestPosition(database)
  const findTaken = prepareRows<[number]>(database, 'SELECT 1 FROM job WHERE id = ?')
  const isPoolClosed = prepareIsPoolClosed(database)
  const keepRecipe = prepareKeepRecipe(database)
  const addSubmission = database.prepare('INSERT INTO job_submission (seq, workflow_id, text) VALUES (?, ?, ?)')
  const keepHook = prepareKeepHook(database)
  return (input) => {
    const submit = SUBMIT.unpack(input)
    const { id, accountId, pool, priority, key, submission } = submit
    if (submit.hasChosenId && findTaken.get(id) !== undefined) return ID_TAKEN
    if (key !== null) {
      const holder = findHolder({ accountId, key, now: submit.keyClaimedAt })
      if (holder !== null) return holder
    }
    if (isPoolClosed(pool)) return POOL_CLOSED
    const hold = toHold(submit)
    if (hold !== null && !ledger.canHold(hold)) return 'insufficient_credits'
    const room = takeQueueRoom(accountId)
    if (room === null) return null
    const [queued, isFollowed] = room
    if (hold !== null) ledger.hold(hold)
    if (key !== null) claimKey({ accountId, key, expiresAt: submit.keyExpiresAt, jobId: id })
    if (submit.hook !== null) keepHook(accountId, submit.hook, submit.createdAt)
    const seq = insertJob(submit, submit.hook?.id ?? (isFollowed === 1 ? FOLLOWED : null))
    if (submit.recipe !== null) keepRecipe(accountId, submit.recipe)
    if (submission !== null) addSubmission.run(seq, submission.workflowId, submission.text)
    return newestPosition({ seq, accountId, pool, priority }, queued)
  }
}

/**
 * The position of a job that was queued a moment ago, when `queued` jobs of its account wait, itself included. Nearly always
 * it is the last of its account's only queue, and then the counter is the answer.
 */
function prepareNewestPosition(database: DatabaseSync) {
  const statements = openStatements(database)
  const selectOthers = prepareRows<[number]>(
    database,
    `SELECT EXISTS (SELECT 1 FROM job WHERE status = 'queued' AND account_id = ?1 AND pool = ?2 AND priority < ?3)
      OR EXISTS (SELECT 1 FROM job WHERE status = 'queued' AND account_id = ?1 AND pool < ?2)
      OR EXISTS (SELECT 1 FROM job WHERE status = 'queued' AND account_id = ?1 AND pool > ?2)`,
  )
  return (job: Parameters<typeof findPositions>[0][number], queued: number): number => {
    if (queued <= 1) return 1
    const isLast = selectOthers.get(job.accountId, job.pool, job.priority)?.[0] === 0
    return isLast ? queued : (runOn(statements, findPositions([job])).get(job.seq) ?? 1)
  }
}

export function prepareKeepRecipe(database: DatabaseSync): (accountId: string, recipe: RecipeFields) => void {
  const upsert = database.prepare(`
    INSERT INTO job_recipe (account_id, recipe, title, terms, expires_at) VALUES (?, ?, '', ?, ?)
    ON CONFLICT (account_id, recipe) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)`)
  return (accountId, [key, terms, expiresAt]) => {
    if (terms !== null) upsert.run(accountId, key, terms, expiresAt)
  }
}

export function toHold({ id, accountId, pool, keyId, price, createdAt }: Submit): HoldInput | null {
  if (price === null) return null
  const [, , holdMicros] = price
  const labels = { pool, model: null, keyId }
  return { holdId: jobHoldId(id), accountId, micros: holdMicros, at: createdAt, labels }
}

type QueueRoom = readonly [queued: number, isFollowed: number]

/** How many jobs of the account wait now and whether it has webhooks, or null when its queue is full. */
function prepareTakeQueueRoom(database: DatabaseSync): (accountId: string) => QueueRoom | null {
  const bump = prepareRows<QueueRoom>(
    database,
    `UPDATE account SET queued = queued + 1 WHERE id = ? AND queued < max_queued
     RETURNING queued, EXISTS (SELECT 1 FROM webhook_endpoint WHERE account_id = account.id AND kind = 'account')`,
  )
  const exists = prepareRows<[number]>(database, 'SELECT 1 FROM account WHERE id = ?')
  return (accountId) => {
    const row = bump.get(accountId)
    if (row !== undefined) return row
    if (exists.get(accountId) === undefined) throw new Error(`No account ${accountId}.`)
    return null
  }
}

function prepareInsertJob(database: DatabaseSync): (submit: Submit, hook: string | null) => number {
  const insertJob = database.prepare(`
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, metadata, needs_extra_data, input_count,
      price_second, price_minimum, needs, recipe, title, hook)
    VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const insertWorkflow = database.prepare('INSERT INTO job_workflow (seq, text, origin) VALUES (?, ?, ?)')
  const insertParts = prepareInsertParts(database)
  const tellQueued = prepareTellQueued(database)
  return (submit, hook) => {
    const { id, accountId, createdAt, metadata, inputs } = submit
    const [perSecondMicros, minimumMicros] = submit.price ?? [null, null]
    const inserted = insertJob.run(
      id,
      accountId,
      submit.pool,
      submit.priority,
      createdAt,
      submit.expiresAt,
      metadata,
      submit.extraDataFlags,
      inputs.length,
      perSecondMicros,
      minimumMicros,
      submit.needs,
      submit.recipe?.[0] ?? null,
      submit.title,
      hook,
    )
    const seq = Number(inserted.lastInsertRowid)
    insertWorkflow.run(seq, submit.workflow, submit.origin)
    insertParts(seq, submit)
    if (hook !== null) tellQueued(seq, seq)
    return seq
  }
}

/** Whatever only some jobs have. */
export function prepareInsertParts(database: DatabaseSync): (seq: number, submit: Submit) => void {
  const insertInput = database.prepare(`
    INSERT INTO job_input (seq, position, name, hash, size_bytes, content_type) VALUES (?, ?, ?, ?, ?, ?)`)
  const insertSecret = database.prepare('INSERT INTO job_secret (seq, sealed) VALUES (?, ?)')
  const insertNotes = database.prepare('INSERT INTO job_notes (seq, text) VALUES (?, ?)')
  const insertLabels = database.prepare(`
    INSERT INTO job_label (account_id, key, value, created_at, job_id) SELECT ?, key, value, ?, ? FROM json_each(?)`)
  return (seq, { id, accountId, createdAt, metadata, inputs, sealedExtraData, notes }) => {
    for (const [position, fields] of inputs.entries()) insertInput.run(seq, position, ...fields)
    if (sealedExtraData !== null) insertSecret.run(seq, sealedExtraData)
    if (notes !== null) insertNotes.run(seq, notes)
    if (metadata !== null) insertLabels.run(accountId, createdAt, id, metadata)
  }
}
