/**
 * A page of an account's jobs, newest first by (created at, id), with live and ended jobs merged in one statement. Without labels
 * each status of ended jobs is one ordered index range per partition; with labels the page walks the range of the first label and
 * drops what does not match. A walk looks at a bounded number of entries and then says where to go on, so that a filter that hardly
 * matches delays no other read.
 */

import type { Job } from '../../../../../domain/jobs/job.ts'
import type { ListQuery } from '../../../../../domain/jobs/job-store.ts'
import { isTerminal } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, toJob } from '../../../rows/jobs/job-row.ts'
import {
  ANSWERED_OUTPUTS,
  type JobsPart,
  type PartQuery,
  readJobPage,
  WALKED_ENTRIES,
} from '../../../search/job-pages.ts'
import type { PageKey } from '../../../search/merge-walks.ts'
import { type Queryable, type Statement, statement } from '../../database/statement.ts'
import { addPositions, type FoundJob, outputsOf } from './find-job.ts'
import { DONE_COLUMNS, LIVE_COLUMNS } from './job-row.ts'

const NEWEST_KEY: PageKey = [Number.MAX_SAFE_INTEGER, 'ffffffff-ffff-ffff-ffff-ffffffffffff']

/** From `page`: a prefix of it whose outputs are not too many. */
const CUT = `
  cut AS (
    SELECT page.*, count(*) OVER () AS page_length, sum(output_count) OVER (
      ORDER BY created_at DESC, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS outputs_before FROM page)`
const IS_KEPT = `coalesce(outputs_before, 0) < ${ANSWERED_OUTPUTS}`
const COLUMNS = DONE_COLUMNS.split(',')
  .map((column) => `cut.${column.trim()}`)
  .join(', ')

type PageRow = readonly [...FoundJob, pageLength: number]

// $1 account, $2 and $3 before, $4 live statuses, $5 limit, $6 ended statuses, $7 since when each must be retained, $8 pool
function listStatement(name: string, live: string, doneCondition: string): Statement<PageRow> {
  return statement<PageRow>(
    name,
    `WITH page AS MATERIALIZED (
       SELECT * FROM (
         SELECT * FROM (${live}) AS live
         UNION ALL
         SELECT done.* FROM unnest($6::text[], $7::bigint[]) AS asked(status, since) CROSS JOIN LATERAL (
           SELECT ${DONE_COLUMNS} FROM job_done
           WHERE account_id = $1 AND ${doneCondition} status = asked.status AND (created_at, id) < ($2, $3::uuid)
             AND expires_at > asked.since
           ORDER BY created_at DESC, id DESC LIMIT $5) AS done) AS both_kinds
       ORDER BY created_at DESC, id DESC LIMIT $5),
     ${CUT}
     SELECT ${COLUMNS}, ${outputsOf('cut')}, page_length FROM cut WHERE ${IS_KEPT} ORDER BY created_at DESC, id DESC`,
  )
}

const LIVE = `SELECT ${LIVE_COLUMNS} FROM job WHERE account_id = $1 AND (created_at, id) < ($2, $3::uuid)
  AND status = ANY($4::text[])`
const FIRST = 'ORDER BY created_at DESC, id DESC LIMIT $5'
// Only a few jobs are held at any time, so they are read and then sorted; a walk in the order of a page would pass all that wait.
const HELD = `SELECT * FROM (${LIVE} AND status IN ('running', 'canceling') OFFSET 0) AS held ${FIRST}`
// Deployments have an index of their own; the common pool is not listed by itself.
const IN_POOL = `SELECT * FROM (${LIVE} AND pool <> 'default' AND pool = $8 OFFSET 0) AS in_pool ${FIRST}`

const LIST = listStatement('jobs.list', `${LIVE} ${FIRST}`, '')
const LIST_HELD = listStatement('jobs.list_held', HELD, '')
const LIST_POOL = listStatement('jobs.list_pool', IN_POOL, `pool <> 'default' AND pool = $8 AND`)

async function listPlain(read: Queryable, input: PartQuery): Promise<JobsPart<FoundJob>> {
  const { accountId, pool, limit, before, now } = input
  const ended = input.statuses.filter(isTerminal)
  const live = input.statuses.filter((status) => !isTerminal(status))
  const values = [
    ...[accountId, ...before, live, limit, ended],
    ended.map((status) => (status === 'expired' ? Number.MIN_SAFE_INTEGER : now)),
  ]
  const rows =
    pool === null
      ? await read.all(live.includes('queued') ? LIST : LIST_HELD, values)
      : await read.all(LIST_POOL, [...values, pool])
  return toAnswer(rows)
}

function toAnswer(rows: readonly PageRow[]): JobsPart<FoundJob> {
  const last = rows.at(-1)
  if (last === undefined) return { jobs: [], resumeBefore: null }
  const pageLength = last.at(-1) as number
  const found = rows.map((row) => row.slice(0, -1) as unknown as FoundJob)
  return { jobs: found, resumeBefore: rows.length < pageLength ? keyOf(last) : null }
}

function keyOf(row: PageRow): PageKey {
  return [row[COLUMN.createdAt], row[COLUMN.id]]
}

type Walk = readonly [walked: number, lastCreatedAt: number, lastJobId: string]

// $1 account, $2 and $3 before, $4 and $5 first label, $6 and $7 the others, $8 statuses, $9 now, $10 pool, $11 limit, $12 walked
function walkStatement(name: string, entries: string) {
  return statement<readonly [...Walk, ...PageRow] | readonly [...Walk, null]>(
    name,
    `WITH entry AS MATERIALIZED (${entries} ORDER BY created_at DESC, job_id DESC LIMIT $12),
   matching AS MATERIALIZED (
     SELECT * FROM entry WHERE NOT EXISTS (
       SELECT 1 FROM unnest($6::text[], $7::text[]) AS other(key, value) WHERE NOT EXISTS (
         SELECT 1 FROM job_label WHERE account_id = $1 AND job_label.key = other.key AND job_label.value = other.value
           AND created_at = entry.created_at AND job_id = entry.job_id AND expires_at = entry.expires_at))),
   page AS MATERIALIZED (
     SELECT job.* FROM matching CROSS JOIN LATERAL (
       SELECT ${LIVE_COLUMNS} FROM job WHERE id = matching.job_id
       UNION ALL
       SELECT ${DONE_COLUMNS} FROM job_done WHERE id = matching.job_id AND expires_at = matching.expires_at
         AND (expires_at > $9 OR status = 'expired')) AS job
     WHERE job.status = ANY($8::text[]) AND ($10::text IS NULL OR job.pool = $10)
     ORDER BY created_at DESC, id DESC LIMIT $11),
   ${CUT},
   walk AS (
     SELECT (SELECT count(*) FROM entry) AS walked, created_at, job_id FROM entry ORDER BY created_at, job_id LIMIT 1)
   SELECT walk.*, ${COLUMNS}, ${outputsOf('cut')}, page_length FROM walk LEFT JOIN cut ON ${IS_KEPT}
   ORDER BY cut.created_at DESC, cut.id DESC`,
  )
}
const LIST_LABELLED = walkStatement(
  'jobs.list_labelled',
  `SELECT created_at, job_id, expires_at FROM job_label
   WHERE account_id = $1 AND key = $4 AND value = $5 AND (created_at, job_id) < ($2, $3::uuid)`,
)
// In the places of the first label: the batch, and nothing.
const LIST_BATCH = walkStatement(
  'jobs.list_batch',
  `SELECT * FROM (
     SELECT created_at, item.id::uuid AS job_id, expires_at
     FROM job_batch CROSS JOIN LATERAL jsonb_array_elements_text(jobs::jsonb) AS item(id)
     WHERE job_batch.id = $4::uuid AND account_id = $1 AND item.id IS NOT NULL AND $5::text = '') AS listed
   WHERE (created_at, job_id) < ($2, $3::uuid)`,
)
const WALK_COLUMNS = 3

async function listLabelled(read: Queryable, input: PartQuery, walked: number): Promise<JobsPart<FoundJob>> {
  const { accountId, pool, batchId, statuses, limit, before, now } = input
  const [first = ['', ''], ...others] = batchId === null ? input.labels : [[batchId, ''], ...input.labels]
  const labels = [...first, others.map(([key]) => key), others.map(([, value]) => value)]
  const asked = batchId === null ? LIST_LABELLED : LIST_BATCH
  const rows = await read.all(asked, [accountId, ...before, ...labels, statuses, now, pool, limit, walked])
  const [head] = rows
  if (head === undefined) return { jobs: [], resumeBefore: null }
  const [entries, lastCreatedAt, lastJobId] = head
  const isEmpty = head[WALK_COLUMNS] === null
  const answer = toAnswer(isEmpty ? [] : rows.map((row) => row.slice(WALK_COLUMNS) as unknown as PageRow))
  if (answer.resumeBefore !== null || answer.jobs.length === limit || entries < walked) return answer
  return { jobs: answer.jobs, resumeBefore: [lastCreatedAt, lastJobId] }
}

export function listJobs(read: Queryable, accountId: string, query: ListQuery): Promise<Job[]> {
  // Most walks end within a page; a filter that hardly matches goes on in longer strides.
  let walked = Math.min(WALKED_ENTRIES, 2 * query.limit)
  return readJobPage(query, {
    accountId,
    newest: NEWEST_KEY,
    async readPart(part) {
      const isPlain = part.batchId === null && part.labels.length === 0
      const { jobs, resumeBefore } = isPlain ? await listPlain(read, part) : await listLabelled(read, part, walked)
      walked = WALKED_ENTRIES
      return { jobs: (await addPositions(read, jobs)).map(toJob), resumeBefore }
    },
  })
}
