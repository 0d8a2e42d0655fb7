/** Jobs in short, by their ids. */
import { isUuid } from '../../../../../../lib/ids.ts'
import type { SummaryScope } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { type StoredSummary, type SummaryRow, TRACEBACK } from '../../../rows/jobs/summary-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { findPositions } from '../jobs/queue-position.ts'

const SHARED = `seq, id, account_id, pool, status, priority, created_at, started_at`
const MORE = `expires_at, attempt, version, output_count, engine_id, metadata, progress`

// The end of the error is its traceback, which nobody reads in a list. Asked for once: a long text is unpacked each time.
const FAILURE = `split_part(error, ${TRACEBACK}, 1)`

const DONE = `SELECT ${SHARED}, completed_at, ${MORE}, error, recipe, title, reused_from FROM job_done`
const IS_OWN = `($2::text IS NULL OR account_id = $2) AND (expires_at > $3 OR status = 'expired')`

const select = (done: string) => `WITH found AS MATERIALIZED (
     SELECT ${SHARED}, NULL::bigint AS completed_at, ${MORE}, NULL::text AS error, recipe, title, NULL::uuid AS reused_from
     FROM job WHERE id = ANY($1::uuid[]) AND ($2::text IS NULL OR account_id = $2)
     UNION ALL ${done})
   SELECT ${SHARED}, completed_at, ${MORE},
     ${FAILURE},
     coalesce(title, (
       SELECT title FROM job_recipe WHERE job_recipe.account_id = found.account_id AND job_recipe.recipe = found.recipe)),
     CASE WHEN completed_at IS NOT NULL THEN (
       SELECT charged FROM ledger_entry WHERE reference = 'job:' || found.id AND kind IN ('settle', 'release') LIMIT 1) END,
     CASE WHEN output_count > 0 THEN (
       SELECT output.id FROM output WHERE job_id = found.id AND output.expires_at = found.expires_at
         AND position IS NOT NULL AND type = 'image' ORDER BY position LIMIT 1) END,
     reused_from::text
   FROM found`

const FIND = statement<SummaryRow>('search.summaries', select(`${DONE} WHERE id = ANY($1::uuid[]) AND ${IS_OWN}`))
// Ended jobs are kept by ranges of their expiry: whoever knows it looks into one of them for each job, and not into all.
const FIND_DATED = statement<SummaryRow>(
  'search.dated_summaries',
  select(`SELECT done.* FROM unnest($1::uuid[], $4::bigint[]) AS asked(id, expires_at) CROSS JOIN LATERAL (
    ${DONE} WHERE job_done.id = asked.id AND job_done.expires_at = asked.expires_at AND ${IS_OWN.replace('expires_at', 'job_done.expires_at')} OFFSET 0) AS done`),
)

type Beside = readonly [
  attempts: string | null,
  terms: string | null,
  held: number | null,
  origin: string | null,
  batchId: string | null,
]

// A batch has the times of its jobs, and these lead to it: a job itself knows nothing of it.
const FIND_BESIDE = statement<Beside>(
  'search.beside',
  `SELECT attempts,
     (SELECT terms FROM job_recipe WHERE job_recipe.account_id = found.account_id AND job_recipe.recipe = found.recipe),
     (SELECT held FROM ledger_entry WHERE reference = 'job:' || found.id AND kind = 'hold'),
     (SELECT origin FROM job_text WHERE job_id = found.id AND job_text.expires_at = found.expires_at),
     (SELECT job_batch.id::text FROM job_batch WHERE job_batch.expires_at = found.expires_at
        AND job_batch.created_at = found.created_at AND job_batch.account_id = found.account_id
        AND position('"' || found.id || '"' IN jobs) > 0)
   FROM (SELECT id, account_id, recipe, attempts, created_at, expires_at FROM job WHERE id = $1
     UNION ALL SELECT id, account_id, recipe, attempts, created_at, expires_at FROM job_done WHERE id = $1) AS found`,
)

export async function findDetails(
  read: Queryable,
  accountId: string,
  jobId: string,
  now: number,
): Promise<readonly [StoredSummary, ...Beside] | null> {
  const [summary] = await findSummaries(read, accountId, [jobId], now)
  const beside = summary === undefined ? undefined : await read.get(FIND_BESIDE, [jobId])
  return summary === undefined || beside === undefined ? null : [summary, ...beside]
}

export async function findSummaries(
  read: Queryable,
  scope: SummaryScope,
  jobIds: readonly string[],
  now: number,
): Promise<StoredSummary[]> {
  const known = jobIds.filter(isUuid)
  return known.length === 0 ? [] : withPositions(read, await read.all(FIND, [known, scope, now]))
}

export async function findDatedSummaries(
  read: Queryable,
  scope: SummaryScope,
  jobs: readonly { readonly id: string; readonly expiresAt: number }[],
  now: number,
): Promise<StoredSummary[]> {
  const [ids, expiries] = [jobs.map(({ id }) => id), jobs.map(({ expiresAt }) => expiresAt)]
  return jobs.length === 0 ? [] : withPositions(read, await read.all(FIND_DATED, [ids, scope, now, expiries]))
}

async function withPositions(read: Queryable, rows: readonly SummaryRow[]): Promise<StoredSummary[]> {
  const waiting = rows.filter(([, , , , status]) => status === 'queued')
  const positions = await findPositions(
    read,
    waiting.map(([seq, , owner, pool, , priority]) => ({ seq, accountId: owner, pool, priority })),
  )
  return rows.map((row) => [row, row[4] === 'queued' ? (positions.get(row[0]) ?? 1) : null])
}
