/** Submit: idempotency key, credit hold, queue bound, job row and counters in one go. The hottest write, so it runs few statements. */
import type { DatabaseSync } from 'node:sqlite'
import { jobHoldId } from '../../../../../domain/credits/ledger.ts'
import type { KeyClaim, KeyHolder } from '../../../../../domain/idempotency/key-record.ts'
import type { Job } from '../../../../../domain/jobs/job.ts'
import type { NewJob, SubmitOutcome } from '../../../../../domain/jobs/job-store.ts'
import { prepareClaimKey, prepareFindHolder } from '../accounts/idempotency-keys.ts'
import { prepareLedger } from '../credits/ledger-holds.ts'
import { prepareRows } from '../statement.ts'
import { prepareNewestPosition } from './queue-position.ts'
import { prepareAddSubmission, prepareIsTaken, type SubmissionRow, toSubmissionRow } from './write-run-records.ts'

type InputFields = readonly [name: string, hash: string, sizeBytes: number, contentType: string]

export type SubmitInput = readonly [
  id: string,
  accountId: string,
  pool: string,
  priority: number,
  createdAt: number,
  expiresAt: number,
  metadata: string | null,
  workflow: string,
  inputs: readonly InputFields[] | null,
  extraDataFlags: number,
  sealedExtraData: Uint8Array | null,
  key: string | null,
  keyClaimedAt: number,
  keyExpiresAt: number,
  price: readonly [second: number, minimum: number, hold: number] | null,
  hasChosenId: number,
  submission: SubmissionRow | null,
  needs: string,
  notes: string | null,
]

/** The queue position, the holder of the key, null when the queue is full, or why there is no job. */
export type SubmitAnswer = number | KeyHolder | null | 'insufficient_credits' | typeof ID_TAKEN

const ID_TAKEN = 'id_taken'

/** Bits of `needs_extra_data`: what lies beside the job until it ends. A job without either costs no statement for them. */
export const HAS_CREDENTIALS = 1
export const HAS_NOTES = 2

export function toSubmitInput(job: NewJob, claim: KeyClaim | null): SubmitInput {
  const metadata = JSON.stringify(job.metadata)
  return [
    job.id,
    job.accountId,
    job.pool,
    job.priority,
    job.createdAt.getTime(),
    job.expiresAt.getTime(),
    metadata === '{}' ? null : metadata,
    job.workflow,
    job.inputs.length === 0
      ? null
      : job.inputs.map(({ name, hash, sizeBytes, contentType }) => [name, hash, sizeBytes, contentType]),
    (job.needsExtraData ? HAS_CREDENTIALS : 0) | (job.notes == null ? 0 : HAS_NOTES),
    job.sealedExtraData,
    claim === null ? null : claim.key,
    claim === null ? 0 : claim.claimedAt.getTime(),
    claim === null ? 0 : claim.expiresAt.getTime(),
    toPrice(job),
    job.hasChosenId === true ? 1 : 0,
    job.submission == null ? null : toSubmissionRow(job.submission),
    job.needs,
    job.notes ?? null,
  ]
}

function toPrice({ price = null }: NewJob): SubmitInput[14] {
  return price === null ? null : [price.perSecondMicros, price.minimumMicros, price.holdMicros]
}

export function toSubmitOutcome(job: NewJob, answer: SubmitAnswer): SubmitOutcome {
  if (answer === null) return { outcome: 'queue_full' }
  if (answer === 'insufficient_credits' || answer === ID_TAKEN) return { outcome: answer }
  if (typeof answer !== 'number') return { outcome: 'key_reused', holder: answer }
  return { outcome: 'queued', job: toQueuedJob(job, answer) }
}

function toQueuedJob(job: NewJob, queuePosition: number): Job {
  return {
    id: job.id,
    accountId: job.accountId,
    pool: job.pool,
    status: 'queued',
    priority: job.priority,
    metadata: job.metadata,
    createdAt: job.createdAt,
    startedAt: null,
    completedAt: null,
    expiresAt: job.expiresAt,
    queuePosition,
    progress: null,
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: 0,
    attempt: 0,
    version: 1,
  }
}

export function prepareSubmit(database: DatabaseSync): (input: SubmitInput) => SubmitAnswer {
  const findHolder = prepareFindHolder(database)
  const claimKey = prepareClaimKey(database)
  const takeQueueRoom = prepareTakeQueueRoom(database)
  const ledger = prepareLedger(database)
  const insertJob = prepareInsertJob(database)
  const newestPosition = prepareNewestPosition(database)
  const isTaken = prepareIsTaken(database)
  const addSubmission = prepareAddSubmission(database)
  return (input) => {
    const [id, accountId, pool, priority] = input
    if (input[15] === 1 && isTaken(id)) return ID_TAKEN
    const [key, keyClaimedAt, keyExpiresAt, price] = [input[11], input[12], input[13], input[14]]
    if (key !== null) {
      const holder = findHolder({ accountId, key, now: keyClaimedAt })
      if (holder !== null) return holder
    }
    const hold = price === null ? null : { holdId: jobHoldId(id), accountId, micros: price[2], at: input[4] }
    if (hold !== null && !ledger.canHold(hold)) return 'insufficient_credits'
    const queued = takeQueueRoom(accountId)
    if (queued === null) return null
    if (hold !== null) ledger.hold(hold)
    if (key !== null) claimKey({ accountId, key, expiresAt: keyExpiresAt, jobId: id, assetId: null })
    const seq = insertJob(input)
    if (input[16] !== null) addSubmission(seq, input[16])
    return newestPosition({ seq, accountId, pool, priority }, queued)
  }
}

/** How many jobs of the account wait now, or null when its queue is full. */
function prepareTakeQueueRoom(database: DatabaseSync): (accountId: string) => number | null {
  const bump = prepareRows<[number]>(
    database,
    'UPDATE account SET queued = queued + 1 WHERE id = ? AND queued < max_queued RETURNING queued',
  )
  const exists = prepareRows<[number]>(database, 'SELECT 1 FROM account WHERE id = ?')
  return (accountId) => {
    const row = bump.get(accountId)
    if (row !== undefined) return row[0]
    if (exists.get(accountId) === undefined) throw new Error(`No account ${accountId}.`)
    return null
  }
}

function prepareInsertJob(database: DatabaseSync): (input: SubmitInput) => number {
  const insertJob = database.prepare(`
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, metadata, needs_extra_data, input_count,
      price_second, price_minimum, needs)
    VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const insertWorkflow = database.prepare('INSERT INTO job_workflow (seq, text) VALUES (?, ?)')
  const insertInput = database.prepare(`
    INSERT INTO job_input (seq, position, name, hash, size_bytes, content_type) VALUES (?, ?, ?, ?, ?, ?)`)
  const insertSecret = database.prepare('INSERT INTO job_secret (seq, sealed) VALUES (?, ?)')
  const insertNotes = database.prepare('INSERT INTO job_notes (seq, text) VALUES (?, ?)')
  const insertLabels = database.prepare(`
    INSERT INTO job_label (account_id, key, value, created_at, job_id) SELECT ?, key, value, ?, ? FROM json_each(?)`)
  return (input) => {
    const [id, accountId, pool, priority, createdAt, expiresAt, metadata, workflow, inputs, extraDataFlags, sealed] =
      input
    const inputCount = inputs === null ? 0 : inputs.length
    const price = input[14]
    const inserted = insertJob.run(
      id,
      accountId,
      pool,
      priority,
      createdAt,
      expiresAt,
      metadata,
      extraDataFlags,
      inputCount,
      price === null ? null : price[0],
      price === null ? null : price[1],
      input[17],
    )
    const seq = Number(inserted.lastInsertRowid)
    insertWorkflow.run(seq, workflow)
    for (const [position, fields] of (inputs ?? []).entries()) insertInput.run(seq, position, ...fields)
    if (sealed !== null) insertSecret.run(seq, sealed)
    if (input[18] !== null) insertNotes.run(seq, input[18])
    if (metadata !== null) insertLabels.run(accountId, createdAt, id, metadata)
    return seq
  }
}
