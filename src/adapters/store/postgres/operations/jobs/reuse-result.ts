/**
 * Jobs that an earlier result answers. Whoever removes a job's outputs deletes their rows: they are locked before anything is written,
 * so a result that is found whole stays so until the new records over its bytes are there.
 */

import type { KeyClaim } from '../../../../../domain/idempotency/idempotency-key.ts'
import type { AnswerOutcome, KeptResult, NewJob, ResultAgain } from '../../../../../domain/jobs/job-store.ts'
import { COLUMN, type JobRow, type OutputRow, toJob, toOutput } from '../../../rows/jobs/job-row.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import type { Connected } from '../../database/connections.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { lockAccounts } from '../accounts/account-counters.ts'
import { findClosedPools } from '../accounts/deployment-rows.ts'
import { claimKeys, findHolders } from '../accounts/idempotency-keys.ts'
import { addRecords } from '../assets/blob-references.ts'
import { keepHooks } from '../webhooks/endpoint-rows.ts'
import { closeEnded, moveToDone } from './end-job.ts'
import { insertJobs, keepRecipes } from './insert-jobs.ts'
import { addOutputs } from './job-outputs.ts'
import { DONE_COLUMNS, findOutputsOf } from './job-row.ts'
import { toHooks } from './submit-job.ts'

interface KeptRow {
  readonly accountId: string
  readonly key: string
  readonly jobId: string
  readonly runMs: number
  readonly expiresAt: number
}

const KEEP = statement(
  'results.keep',
  `INSERT INTO job_result (account_id, key, job_id, run_ms, expires_at)
   SELECT DISTINCT ON (account_id, key) * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[])
     AS new(account_id, key, job_id, run_ms, expires_at)
   ORDER BY account_id, key
   ON CONFLICT (account_id, key) DO UPDATE
     SET job_id = excluded.job_id, run_ms = excluded.run_ms, expires_at = excluded.expires_at`,
)

export async function keepResults(tx: Queryable, rows: readonly KeptRow[]): Promise<void> {
  if (rows.length === 0) return
  await tx.run(KEEP, [
    rows.map(({ accountId }) => accountId),
    rows.map(({ key }) => key),
    rows.map(({ jobId }) => jobId),
    rows.map(({ runMs }) => runMs),
    rows.map(({ expiresAt }) => expiresAt),
  ])
}

interface ResultQuery {
  readonly accountId: string
  readonly key: string
  readonly now: number
}

type SourceRow = readonly [
  jobId: string,
  runMs: number,
  expiresAt: number,
  outputCount: number,
  progress: string | null,
]
type ListedRow = readonly [...output: OutputRow, filePath: string, subfolder: string | null]

const SOURCE = `SELECT kept.job_id, kept.run_ms, done.expires_at, done.output_count, done.progress
  FROM job_result AS kept JOIN job_done AS done ON done.id = kept.job_id AND done.expires_at = kept.expires_at
  WHERE kept.account_id = $1 AND kept.key = $2 AND done.account_id = $1 AND done.status = 'succeeded' AND done.expires_at > $3`
const LISTED = `SELECT id, node_id, name, type, content_type, size_bytes, hash, file_path, subfolder FROM output
  WHERE job_id = $1 AND expires_at = $2 AND account_id = $3 AND position IS NOT NULL ORDER BY position`

const FIND = {
  reading: {
    source: statement<SourceRow>('results.find', SOURCE),
    listed: statement<ListedRow>('results.listed', LISTED),
  },
  locking: {
    source: statement<SourceRow>('results.lock', `${SOURCE} FOR KEY SHARE OF done`),
    listed: statement<ListedRow>('results.lock_listed', `${LISTED} FOR KEY SHARE`),
  },
}

interface WholeResult {
  readonly source: SourceRow
  readonly outputs: readonly ListedRow[]
}

async function findWhole(
  db: Queryable,
  { accountId, key, now }: ResultQuery,
  { source: findSource, listed }: (typeof FIND)['reading'],
): Promise<WholeResult | null> {
  const source = await db.get(findSource, [accountId, key, now])
  if (source === undefined) return null
  const [jobId, , expiresAt, outputCount] = source
  const outputs = await db.all(listed, [jobId, expiresAt, accountId])
  return outputs.length === outputCount ? { source, outputs } : null
}

export async function findResult(db: Queryable, query: ResultQuery): Promise<KeptResult | null> {
  const whole = await findWhole(db, query, FIND.reading)
  if (whole === null) return null
  const [jobId, runMs] = whole.source
  return {
    jobId,
    runMs,
    outputs: whole.outputs.map(([id, nodeId, name, type, contentType, sizeBytes, hash]) =>
      toOutput([id, nodeId, name, type, contentType, sizeBytes, hash]),
    ),
  }
}

/** A result for a job, locked. */
export interface FoundResult extends WholeResult {
  readonly job: NewJob
  readonly again: ResultAgain
}

/** The result for the key, if it is whole: perhaps of a newer job than the one that was found before. */
export async function findAgain(tx: Queryable, job: NewJob, again: ResultAgain): Promise<FoundResult | null> {
  const query = { accountId: job.accountId, key: again.key, now: job.createdAt.getTime() }
  const whole = await findWhole(tx, query, FIND.locking)
  return whole?.outputs.length === again.assetIds.length ? { ...whole, job, again } : null
}

const MARK = statement(
  'results.mark',
  `UPDATE job_done SET reused_from = found.source
   FROM unnest($1::uuid[], $2::bigint[], $3::uuid[]) AS found(id, expires_at, source)
   WHERE job_done.id = found.id AND job_done.expires_at = found.expires_at`,
)

// The messages of their ends are there by then, and do not say whose results they are. As a text: not every JSON fits into jsonb.
const TELL = statement(
  'results.tell',
  `UPDATE webhook_delivery SET facts = left(facts, -1) || ', "reused_from": "' || found.source || '"}'
   FROM unnest($1::text[], $2::text[]) AS found(id, source)
   WHERE webhook_delivery.subject = found.id AND webhook_delivery.type = 'job.succeeded'`,
)

/** Ends jobs that were queued in this transaction. Locks come in the order that all transactions keep. */
export async function answerQueued(tx: Queryable, found: readonly FoundResult[]): Promise<readonly JobRow[]> {
  if (found.length === 0) return []
  const { counts, records } = await addOutputs(tx, found.map(toAddition))
  const [moved] = await Promise.all([
    moveToDone(
      tx,
      found.map(({ job: { id, createdAt }, source: [, , , , progress] }) => ({
        ...({ id, to: 'succeeded', at: createdAt.getTime(), error: null, progress } as const),
        outputCount: counts.get(id) ?? null,
      })),
    ),
    addRecords(tx, records),
  ])
  const [ids, sources] = [found.map(({ job }) => job.id), found.map(({ source: [jobId] }) => jobId)]
  await Promise.all([
    closeEnded(tx, moved),
    tx.run(MARK, [ids, found.map(({ job }) => job.expiresAt.getTime()), sources]),
    tx.run(TELL, [ids, sources]),
    // The newest job lives longest.
    keepResults(
      tx,
      found.map(({ job: { id, accountId, expiresAt }, again: { key }, source: [, runMs] }) => ({
        ...{ accountId, key, jobId: id, runMs, expiresAt: expiresAt.getTime() },
      })),
    ),
  ])
  return moved.map(({ row }) => row)
}

function toAddition({ job: { id, accountId, createdAt, expiresAt }, again: { assetIds }, outputs }: FoundResult) {
  return {
    ...{ jobId: id, accountId, expiresAt: expiresAt.getTime(), outputCount: 0, now: createdAt.getTime() },
    outputs: outputs.map(([, nodeId, name, type, contentType, sizeBytes, hash, filePath, subfolder], index) => ({
      row: [assetIds[index]!, nodeId, name, type, contentType, sizeBytes, hash] as const,
      filePath,
      subfolder,
      isListed: true,
    })),
  }
}

interface Answer {
  readonly job: NewJob
  readonly again: ResultAgain
  readonly claim: KeyClaim | null
  readonly recipe: RecipeFields | null
}

const FIND_OURS = statement<JobRow>(
  'results.find_ours',
  `SELECT ${DONE_COLUMNS} FROM job_done WHERE id = $1 AND expires_at = $2 AND account_id = $3`,
)

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

async function findOurs(tx: Queryable, { id, accountId, expiresAt }: NewJob): Promise<AnswerOutcome | null> {
  const row = await tx.get(FIND_OURS, [id, expiresAt.getTime(), accountId])
  return row === undefined ? null : toAnswered(tx, row)
}

async function answer(tx: Queryable, { job, again, claim, recipe }: Answer): Promise<AnswerOutcome> {
  const { id, accountId, pool } = job
  // The lock comes first: each statement behind it sees what was committed before.
  const [closed, accounts, [holder = null]] = await Promise.all([
    findClosedPools(tx, [pool]),
    lockAccounts(tx, [accountId]),
    findHolders(tx, claim === null ? [] : [{ accountId, key: claim.key, now: claim.claimedAt.getTime() }]),
  ])
  if (holder !== null) return { outcome: 'key_reused', holder }
  if (closed.has(pool)) return { outcome: 'pool_closed' }
  if (!accounts.has(accountId)) throw new Error(`No account ${accountId}.`)
  const found = await findAgain(tx, job, again)
  if (found === null) return { outcome: 'gone' }
  const times = claim === null ? null : { claimedAt: claim.claimedAt.getTime(), expiresAt: claim.expiresAt.getTime() }
  await Promise.all([
    keepHooks(tx, toHooks([job])),
    insertJobs(tx, [job]),
    keepRecipes(tx, recipe === null ? [] : [{ accountId, recipe }]),
    claimKeys(
      tx,
      claim === null || times === null ? [] : [{ accountId, key: claim.key, ...times, jobId: id, assetId: null }],
    ),
  ])
  const [row] = await answerQueued(tx, [found])
  if (row === undefined) throw new Error(`No job ${id}.`)
  return toAnswered(tx, [...row.slice(0, -1), found.source[0]] as unknown as JobRow)
}

async function toAnswered(tx: Queryable, row: JobRow): Promise<AnswerOutcome> {
  const outputs = await findOutputsOf(tx, [row])
  return { outcome: 'answered', job: toJob([row, outputs.get(row[COLUMN.id]) ?? null, null]) }
}

const SWEEP = statement(
  'results.sweep',
  `DELETE FROM job_result WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM job_result WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
)

export function sweepResults(db: Queryable, sweep: { readonly now: number; readonly limit: number }): Promise<number> {
  return db.run(SWEEP, [sweep.now, sweep.limit])
}
