/**
 * Jobs that an earlier result answers. Whether that result is still whole is decided before anything is written, in the operation
 * that writes: nothing else can remove an output in between.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyClaim, KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { Output } from '../../../../../domain/jobs/job.ts'
import type { AnswerOutcome, KeptResult, NewJob, ResultAgain } from '../../../../../domain/jobs/job-store.ts'
import { type JobRow, type OutputRow, type StoredJob, toJob, toOutput } from '../../../rows/jobs/job-row.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { prepareIsPoolClosed } from '../accounts/deployment-rows.ts'
import { prepareClaimKey, prepareFindHolder } from '../accounts/idempotency-keys.ts'
import { prepareInsertJobs } from '../batches/insert-jobs.ts'
import type { Packed } from '../packed.ts'
import { prepareRows } from '../statement.ts'
import { prepareKeepHook } from '../webhooks/endpoint-rows.ts'
import { prepareEndJob } from './end-job.ts'
import type { CompleteJob } from './job-row.ts'
import { prepareKeepRecipe, SUBMIT, type Submit, toSubmitInput } from './submit-job.ts'

interface KeptRow {
  readonly accountId: string
  readonly key: string
  readonly jobId: string
  readonly runMs: number
  readonly expiresAt: number
}

export function prepareKeepResult(database: DatabaseSync): (row: KeptRow) => void {
  const upsert = database.prepare(`
    INSERT INTO job_result (account_id, key, job_id, run_ms, expires_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (account_id, key) DO UPDATE
      SET job_id = excluded.job_id, run_ms = excluded.run_ms, expires_at = excluded.expires_at`)
  return ({ accountId, key, jobId, runMs, expiresAt }) => void upsert.run(accountId, key, jobId, runMs, expiresAt)
}

/** An output that is listed and whose record lives, with what the record says of its place. */
type ListedRow = [...output: OutputRow, filePath: string | null, subfolder: string | null]

interface WholeResult {
  readonly jobId: string
  readonly runMs: number
  readonly progress: string | null
  readonly outputs: readonly ListedRow[]
}

interface ResultQuery {
  readonly accountId: string
  readonly key: string
  readonly now: number
}

/** null: there is none, or a part of it is gone. */
function prepareFindWhole(database: DatabaseSync): (query: ResultQuery) => WholeResult | null {
  const select = prepareRows<[jobId: string, runMs: number, seq: number, outputCount: number, progress: string | null]>(
    database,
    `SELECT kept.job_id, kept.run_ms, job.seq, job.output_count, job.progress FROM job_result AS kept JOIN job ON job.id = kept.job_id
     WHERE kept.account_id = ?1 AND kept.key = ?2 AND job.account_id = ?1 AND job.status = 'succeeded' AND job.expires_at > ?3`,
  )
  const selectListed = prepareRows<ListedRow>(
    database,
    `SELECT listed.asset_id, listed.node_id, listed.name, listed.type, listed.content_type, listed.size_bytes, listed.hash,
       asset.file_path, asset.subfolder
     FROM job_output AS listed JOIN asset ON asset.id = listed.asset_id
     WHERE listed.seq = ?1 AND asset.account_id = ?2 AND asset.hash = listed.hash
       AND (asset.expires_at IS NULL OR asset.expires_at > ?3)
     ORDER BY listed.position`,
  )
  return ({ accountId, key, now }) => {
    const row = select.get(accountId, key, now)
    if (row === undefined) return null
    const [jobId, runMs, seq, outputCount, progress] = row
    const outputs = selectListed.all(seq, accountId, now)
    return outputs.length === outputCount ? { jobId, runMs, progress, outputs } : null
  }
}

export function prepareFindResult(database: DatabaseSync): (query: ResultQuery) => KeptResult | null {
  const findWhole = prepareFindWhole(database)
  return (query) => {
    const whole = findWhole(query)
    if (whole === null) return null
    const { jobId, runMs, outputs } = whole
    return { jobId, runMs, outputs: outputs.map(toKeptOutput) }
  }
}

function toKeptOutput([assetId, nodeId, name, type, contentType, sizeBytes, hash]: ListedRow): Output {
  return toOutput([assetId, nodeId, name, type, contentType, sizeBytes, hash])
}

type Again = Pick<Submit, 'id' | 'accountId' | 'createdAt' | 'expiresAt'>

/** Ends a queued job with a result that is still whole; null: it is not, and the job stays as it is. */
export function prepareAnswerQueued(database: DatabaseSync): (job: Again, again: ResultAgain) => JobRow | null {
  const findAgain = prepareFindAgain(database)
  const answer = prepareAnswer(database)
  return (job, again) => {
    const whole = findAgain(job, again)
    return whole === null ? null : answer(job, again, whole)
  }
}

/** The result for the key, if it is whole: perhaps of a newer job than the one that was found before. */
function prepareFindAgain(database: DatabaseSync): (job: Again, again: ResultAgain) => WholeResult | null {
  const findWhole = prepareFindWhole(database)
  return ({ accountId, createdAt }, { key, assetIds }) => {
    const whole = findWhole({ accountId, key, now: createdAt })
    return whole?.outputs.length === assetIds.length ? whole : null
  }
}

function prepareAnswer(database: DatabaseSync): (job: Again, again: ResultAgain, whole: WholeResult) => JobRow {
  const findSeq = prepareRows<[seq: number]>(database, 'SELECT seq FROM job WHERE id = ?')
  const insertAsset = database.prepare(`
    INSERT INTO asset
      (id, account_id, hash, size_bytes, content_type, file_path, subfolder, tags, created_at, expires_at, job_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, ?)`)
  const insertOutput = database.prepare(`
    INSERT INTO job_output (seq, position, asset_id, node_id, name, type, content_type, size_bytes, hash)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const update = database.prepare('UPDATE job SET output_count = ?2, progress = ?3, reused_from = ?4 WHERE seq = ?1')
  // The message of its end is there by then, and does not say whose result it is.
  const tell = database.prepare(`
    UPDATE webhook_delivery SET facts = json_set(facts, '$.reused_from', ?2) WHERE subject = ?1 AND type = 'job.succeeded'`)
  const endJob = prepareEndJob(database)
  const keepResult = prepareKeepResult(database)
  return ({ id, accountId, createdAt, expiresAt }, { key, assetIds }, { jobId, runMs, progress, outputs }) => {
    const seq = findSeq.get(id)?.[0]
    if (seq === undefined) throw new Error(`No job ${id}.`)
    for (const [position, output] of outputs.entries()) {
      const [, nodeId, name, type, contentType, sizeBytes, hash, filePath, subfolder] = output
      const [assetId, bytes] = [assetIds[position]!, [hash, sizeBytes, contentType] as const]
      insertAsset.run(assetId, accountId, ...bytes, filePath, subfolder, createdAt, expiresAt, id)
      insertOutput.run(seq, position, assetId, nodeId, name, type, contentType, sizeBytes, hash)
    }
    update.run(seq, outputs.length, progress, jobId)
    const row = endJob({ seq, accountId, from: 'queued', to: 'succeeded', at: createdAt, error: null })
    tell.run(id, jobId)
    // The newest job lives longest.
    keepResult({ accountId, key, jobId: id, runMs, expiresAt })
    return row
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

type AnswerAnswer = StoredJob | KeyHolder | 'gone' | 'pool_closed'

export function toAnswerOutcome(answer: AnswerAnswer): AnswerOutcome {
  if (typeof answer === 'string') return { outcome: answer }
  if ('jobId' in answer) return { outcome: 'key_reused', holder: answer }
  return { outcome: 'answered', job: toJob(answer) }
}

export function prepareAnswerAgain(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (input: AnswerInput) => AnswerAnswer {
  const findHolder = prepareFindHolder(database)
  const claimKey = prepareClaimKey(database)
  const isPoolClosed = prepareIsPoolClosed(database)
  const findAgain = prepareFindAgain(database)
  const answer = prepareAnswer(database)
  const insertJobs = prepareInsertJobs(database)
  const keepRecipe = prepareKeepRecipe(database)
  const keepHook = prepareKeepHook(database)
  // It leaves the queue in the same operation, so it needs no room in it.
  const count = database.prepare('UPDATE account SET queued = queued + 1 WHERE id = ?')
  return ({ submit: packed, again }) => {
    const submit = SUBMIT.unpack(packed)
    const { id, accountId, key, createdAt } = submit
    const holder = key === null ? null : findHolder({ accountId, key, now: submit.keyClaimedAt })
    if (holder !== null) return holder
    if (isPoolClosed(submit.pool)) return 'pool_closed'
    const whole = findAgain(submit, again)
    if (whole === null) return 'gone'
    if (count.run(accountId).changes === 0) throw new Error(`No account ${accountId}.`)
    if (key !== null) claimKey({ accountId, key, expiresAt: submit.keyExpiresAt, jobId: id, assetId: null })
    if (submit.hook !== null) keepHook(accountId, submit.hook, createdAt)
    insertJobs([submit])
    if (submit.recipe !== null) keepRecipe(accountId, submit.recipe)
    return completeJob(answer(submit, again, whole))
  }
}

export function prepareSweepResults(
  database: DatabaseSync,
): (sweep: { readonly now: number; readonly limit: number }) => number {
  const remove = database.prepare(`
    DELETE FROM job_result WHERE (account_id, key) IN
      (SELECT account_id, key FROM job_result WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`)
  return ({ now, limit }) => Number(remove.run(now, limit).changes)
}
