/**
 * Results that answer further jobs. Whoever removes a job's outputs deletes their rows: they are locked before anything is written,
 * so a result that is found whole stays so until the new records over its bytes are there.
 */
import type { Job } from '../../../../domain/jobs/job.ts'
import type { KeptResult, NewJob, ResultAgain } from '../../../../domain/jobs/job-store.ts'
import { toJob } from '../../rows/jobs/job.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { both, command, query, toRows, type Words } from '../../statements/statement.ts'
import { jobRow, outputRow } from '../../tables/jobs.ts'
import { integer, nullable, pick, type RowOf, shape, text } from '../../tables/table.ts'
import { addRecords } from '../account-storage.ts'
import { addOutputs } from './add-outputs.ts'
import { closeEnded, moveToEnd } from './end-jobs.ts'

interface KeptRow {
  readonly accountId: string
  readonly key: string
  readonly jobId: string
  readonly runMs: number
  readonly expiresAt: Date
}

const KEPT = { account_id: 'text', key: 'text', job_id: 'uuid', run_ms: 'bigint', expires_at: 'bigint' } as const
const KEEP = command(
  'results.keep',
  (words) => `
    INSERT INTO job_result (account_id, key, job_id, run_ms, expires_at)
    SELECT account_id, key, job_id, run_ms, expires_at FROM ${words.rows(':kept', KEPT)} AS kept WHERE true ORDER BY account_id, key
    ON CONFLICT (account_id, key) DO UPDATE
      SET job_id = excluded.job_id, run_ms = excluded.run_ms, expires_at = excluded.expires_at`,
)

export function* keepResults(kept: readonly KeptRow[]): Steps<void> {
  if (kept.length === 0) return
  // One statement writes a row once.
  const byKey = new Map(kept.map((row) => [`${row.accountId} ${row.key}`, row]))
  const rows = [...byKey.values()].map(({ accountId, key, jobId, runMs, expiresAt }) => ({
    ...{ account_id: accountId, key, job_id: jobId, run_ms: runMs, expires_at: expiresAt },
  }))
  yield* run(KEEP, toRows('kept', rows))
}

const source = shape({
  ...pick(jobRow, 'seq', 'expiresAt', 'outputCount', 'progress').fields,
  jobId: text(),
  runMs: integer(),
})
/** An output that is listed and whose record lives, with what the record says of its place. */
const listed = shape({ ...outputRow.fields, filePath: nullable(text()), subfolder: nullable(text()) })

const sourceOf = ({ either, lock }: Words, isLocking: boolean) => `
  SELECT done.seq, done.expires_at, done.output_count, done.progress, kept.job_id, kept.run_ms
  FROM job_result AS kept JOIN ${either('job', 'job_done')} AS done
    ON done.id = kept.job_id ${either('', 'AND done.expires_at = kept.expires_at')}
  WHERE kept.account_id = :accountId AND kept.key = :key AND done.account_id = :accountId AND done.status = 'succeeded'
    AND done.expires_at > :now ${isLocking ? lock('KEY SHARE', 'done') : ''}`
const listedOf = ({ either, lock }: Words, isLocking: boolean) =>
  either(
    `SELECT listed.asset_id, listed.node_id, listed.name, listed.type, listed.content_type, listed.size_bytes, listed.hash,
       asset.file_path, asset.subfolder
     FROM job_output AS listed JOIN asset ON asset.id = listed.asset_id
     WHERE listed.seq = :seq AND asset.account_id = :accountId AND asset.hash = listed.hash
       AND (asset.expires_at IS NULL OR asset.expires_at > :now) ORDER BY listed.position`,
    `SELECT id AS asset_id, node_id, name, type, content_type, size_bytes, hash, file_path, subfolder FROM output
     WHERE job_id = :jobId AND expires_at = :expiresAt AND account_id = :accountId AND position IS NOT NULL
     ORDER BY position ${isLocking ? lock('KEY SHARE') : ''}`,
  )
const READING = {
  source: query('results.find', source, (words) => sourceOf(words, false)),
  listed: query('results.listed', listed, (words) => listedOf(words, false)),
}
const LOCKING = {
  source: query('results.lock', source, (words) => sourceOf(words, true)),
  listed: query('results.lockListed', listed, (words) => listedOf(words, true)),
}

interface WholeResult {
  readonly source: RowOf<typeof source>
  readonly outputs: readonly RowOf<typeof listed>[]
}

/** null: there is none, or a part of it is gone. */
function* findWhole(accountId: string, key: string, now: Date, how: typeof READING): Steps<WholeResult | null> {
  const found = yield* get(how.source, { accountId, key, now })
  if (found === undefined) return null
  const { seq, jobId, expiresAt, outputCount } = found
  const outputs = yield* all(how.listed, { seq, jobId, expiresAt, accountId, now })
  return outputs.length === outputCount ? { source: found, outputs } : null
}

export function* findResult(accountId: string, key: string, now: Date): Steps<KeptResult | null> {
  const whole = yield* findWhole(accountId, key, now, READING)
  if (whole === null) return null
  const { jobId, runMs } = whole.source
  return { jobId, runMs, outputs: whole.outputs.map(({ filePath, subfolder, ...output }) => output) }
}

type Again = Pick<NewJob, 'id' | 'accountId' | 'createdAt' | 'expiresAt'>

/** A result for a job, locked. */
export interface FoundResult extends WholeResult {
  readonly job: Again
  readonly again: ResultAgain
}

/** The result for the key, if it is whole: perhaps of a newer job than the one that was found before. */
export function* findAgain(job: Again, again: ResultAgain): Steps<FoundResult | null> {
  const whole = yield* findWhole(job.accountId, again.key, job.createdAt, LOCKING)
  return whole?.outputs.length === again.assetIds.length ? { ...whole, job, again } : null
}

const place = pick(jobRow, 'seq', 'id')
const FIND_SEQS = query(
  'results.findSeqs',
  place,
  (words) => `SELECT seq, id FROM job WHERE ${words.isIn('id', ':ids')}`,
)

// The messages of their ends are there by then, and do not say whose results they are. As a text: not every JSON fits into jsonb.
const TOLD = { job_id: 'text', source: 'text' } as const
const TELL = command('results.tell', (words) =>
  words.either(
    `UPDATE webhook_delivery SET facts = json_set(facts, '$.reused_from', found.source) FROM ${words.rows(':found', TOLD)} AS found
     WHERE subject = found.job_id AND type = 'job.succeeded'`,
    `UPDATE webhook_delivery SET facts = left(facts, -1) || ', "reused_from": "' || found.source || '"}'
     FROM ${words.rows(':found', TOLD)} AS found WHERE subject = found.job_id AND type = 'job.succeeded'`,
  ),
)

/** Ends jobs that were queued in this transaction. Locks come in the order that all transactions keep. */
export function* answerQueued(found: readonly FoundResult[]): Steps<Job[]> {
  if (found.length === 0) return []
  const ids = found.map(({ job }) => job.id)
  const seqs = new Map((yield* all(FIND_SEQS, { ids })).map(({ seq, id }) => [id, seq]))
  const additions = found.map(({ job: { id, accountId, createdAt, expiresAt }, again: { assetIds }, outputs }) => ({
    ...{ id, seq: seqs.get(id) ?? 0, accountId, expiresAt, outputCount: 0, now: createdAt },
    outputs: outputs.map(({ filePath, subfolder, ...output }, index) => ({
      ...output,
      assetId: assetIds[index] ?? '',
      location: {
        folder: filePath?.startsWith('temp/') ? 'temp' : 'output',
        subfolder: subfolder ?? '',
        isUnlisted: false,
      } as const,
    })),
  }))
  const { counts, records } = yield* addOutputs(additions)
  const ended = yield* moveToEnd(
    found.map(({ job: { id, createdAt: at }, source: { progress, jobId: reusedFrom } }) => ({
      ...({ id, from: 'queued', to: 'succeeded', at, error: null, progress, reusedFrom } as const),
      outputCount: counts.get(id) ?? null,
    })),
  )
  yield* addRecords(records)
  yield* closeEnded(ended)
  yield* run(
    TELL,
    toRows(
      'found',
      found.map(({ job, source }) => ({ job_id: job.id, source: source.jobId })),
    ),
  )
  // The newest job lives longest.
  yield* keepResults(
    found.map(({ job: { id, accountId, expiresAt }, again: { key }, source: { runMs } }) => ({
      ...{ accountId, key, jobId: id, runMs, expiresAt },
    })),
  )
  const outputsOf = new Map(additions.map(({ id, outputs }) => [id, outputs.map(({ location, ...output }) => output)]))
  return ended.map(({ row }) => toJob(row, outputsOf.get(row.id) ?? [], null))
}

const SWEEP = command(
  'results.sweep',
  both({
    sqlite: `DELETE FROM job_result WHERE (account_id, key) IN
      (SELECT account_id, key FROM job_result WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)`,
    postgres: `DELETE FROM job_result WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM job_result WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED))`,
  }),
)

/** Forgets keys whose jobs are past their retention; returns how many. */
export function* sweepResults(now: Date, limit: number): Steps<number> {
  return yield* run(SWEEP, { now, limit })
}
