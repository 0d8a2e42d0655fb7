/**
 * A page of an account's jobs, newest first by (created at, id), with live and ended jobs merged in one statement. Without labels
 * each status of ended jobs is one ordered index range per partition; with labels the page walks the range of the first label and
 * drops what does not match. A walk looks at a bounded number of entries and then says where to go on, so that a filter that hardly
 * matches delays no other read.
 */
import { isTerminal } from '../../../../domain/jobs/transitions.ts'
import { ANSWERED_OUTPUTS, type JobLists, type JobsPart, type PartQuery } from '../../search/job-pages.ts'
import { all, defineStore, read, type Steps } from '../../statements/operation.ts'
import { postgresOnly, query, type Words } from '../../statements/statement.ts'
import { addPositions, foundJob, LIVE_COLUMNS, outputsOf } from '../../stores/jobs/find-job.ts'
import { jobRow } from '../../tables/jobs.ts'
import { columnsOf, flag, integer, type RowOf, shape, text } from '../../tables/table.ts'

const pageRow = shape({ ...foundJob.fields, pageLength: integer() })

const DONE_COLUMNS = jobRow.columns
/** From `page`: a prefix of it whose outputs are not too many. */
const CUT = `
  cut AS (
    SELECT page.*, count(*) OVER () AS page_length, sum(output_count) OVER (
      ORDER BY created_at DESC, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS outputs_before FROM page)`
const IS_KEPT = `coalesce(outputs_before, 0) < ${ANSWERED_OUTPUTS}`
const CUT_COLUMNS = columnsOf(jobRow.fields).map((column) => `cut.${column}`)
const BEFORE = '(created_at, id) < (:createdAt, :beforeId::uuid)'

/** `since`: when each of the ended statuses must be retained. */
function listStatement(name: string, live: (words: Words) => string, doneCondition: string) {
  return query(
    name,
    pageRow,
    postgresOnly(
      (words) => `WITH page AS MATERIALIZED (
           SELECT * FROM (
             SELECT * FROM (${live(words)}) AS live
             UNION ALL
             SELECT done.* FROM unnest(:ended::text[], :since::bigint[]) AS asked(status, since) CROSS JOIN LATERAL (
               SELECT ${DONE_COLUMNS} FROM job_done
               WHERE account_id = :accountId AND ${doneCondition} status = asked.status AND ${BEFORE} AND expires_at > asked.since
               ORDER BY created_at DESC, id DESC LIMIT :limit) AS done) AS both_kinds
           ORDER BY created_at DESC, id DESC LIMIT :limit),
         ${CUT}
         SELECT ${CUT_COLUMNS}, ${outputsOf(words, 'cut')} AS outputs, page_length FROM cut WHERE ${IS_KEPT} ORDER BY created_at DESC, id DESC`,
    ),
  )
}

const LIVE = (words: Words) => `SELECT ${LIVE_COLUMNS(words)} FROM job WHERE account_id = :accountId AND ${BEFORE}
  AND status = ANY(:live::text[])`
const FIRST = 'ORDER BY created_at DESC, id DESC LIMIT :limit'
// Only a few jobs are held at any time, so they are read and then sorted; a walk in the order of a page would pass all that wait.
const HELD = (words: Words) =>
  `SELECT * FROM (${LIVE(words)} AND status IN ('running', 'canceling') OFFSET 0) AS held ${FIRST}`
// Deployments have an index of their own; the common pool is not listed by itself.
const IN_POOL = (words: Words) =>
  `SELECT * FROM (${LIVE(words)} AND pool <> 'default' AND pool = :pool OFFSET 0) AS in_pool ${FIRST}`

const LIST = listStatement('jobs.list', (words) => `${LIVE(words)} ${FIRST}`, '')
const LIST_HELD = listStatement('jobs.list_held', HELD, '')
const LIST_POOL = listStatement('jobs.list_pool', IN_POOL, `pool <> 'default' AND pool = :pool AND`)

function* readPlain({ accountId, pool, statuses, limit, before, now }: PartQuery): Steps<JobsPart> {
  const ended = statuses.filter(isTerminal)
  const live = statuses.filter((status) => !isTerminal(status))
  const [createdAt, beforeId] = before
  const since = ended.map((status) => (status === 'expired' ? Number.MIN_SAFE_INTEGER : now))
  const range = { accountId, createdAt, beforeId, live, limit, ended, since }
  const rows = yield* pool === null
    ? all(live.includes('queued') ? LIST : LIST_HELD, range)
    : all(LIST_POOL, { ...range, pool })
  return yield* toPart(rows)
}

function* toPart(rows: readonly RowOf<typeof pageRow>[]): Steps<JobsPart> {
  const last = rows.at(-1)
  const isCut = last !== undefined && rows.length < last.pageLength
  return { jobs: yield* addPositions(rows), resumeBefore: isCut ? [last.createdAt.getTime(), last.id] : null }
}

const walkedRow = shape({
  walked: integer(),
  lastCreatedAt: integer(),
  lastJobId: text(),
  isFound: flag('boolean'),
  ...pageRow.fields,
})

function walkStatement(name: string, entries: string) {
  return query(
    name,
    walkedRow,
    postgresOnly(
      (words) => `WITH entry AS MATERIALIZED (${entries} ORDER BY created_at DESC, job_id DESC LIMIT :walked),
         matching AS MATERIALIZED (
           SELECT * FROM entry WHERE NOT EXISTS (
             SELECT 1 FROM unnest(:keys::text[], :values::text[]) AS other(key, value) WHERE NOT EXISTS (
               SELECT 1 FROM job_label WHERE account_id = :accountId AND job_label.key = other.key AND job_label.value = other.value
                 AND created_at = entry.created_at AND job_id = entry.job_id AND expires_at = entry.expires_at))),
         page AS MATERIALIZED (
           SELECT job.* FROM matching CROSS JOIN LATERAL (
             SELECT ${LIVE_COLUMNS(words)} FROM job WHERE id = matching.job_id
             UNION ALL
             SELECT ${DONE_COLUMNS} FROM job_done WHERE id = matching.job_id AND expires_at = matching.expires_at
               AND (expires_at > :now OR status = 'expired')) AS job
           WHERE job.status = ANY(:statuses::text[]) AND (:pool::text IS NULL OR job.pool = :pool)
           ORDER BY created_at DESC, id DESC LIMIT :limit),
         ${CUT},
         walk AS (
           SELECT (SELECT count(*) FROM entry) AS walked, created_at AS last_created_at, job_id AS last_job_id
           FROM entry ORDER BY created_at, job_id LIMIT 1)
         SELECT walk.*, cut.id IS NOT NULL AS is_found, ${CUT_COLUMNS}, ${outputsOf(words, 'cut')} AS outputs, page_length
         FROM walk LEFT JOIN cut ON ${IS_KEPT}
         ORDER BY cut.created_at DESC, cut.id DESC`,
    ),
  )
}
const LIST_LABELLED = walkStatement(
  'jobs.list_labelled',
  `SELECT created_at, job_id, expires_at FROM job_label
   WHERE account_id = :accountId AND key = :key AND value = :value AND (created_at, job_id) < (:createdAt, :beforeId::uuid)`,
)
const LIST_BATCH = walkStatement(
  'jobs.list_batch',
  `SELECT * FROM (
     SELECT created_at, item.id::uuid AS job_id, expires_at
     FROM job_batch CROSS JOIN LATERAL jsonb_array_elements_text(jobs::jsonb) AS item(id)
     WHERE job_batch.id = :batchId::uuid AND account_id = :accountId AND item.id IS NOT NULL) AS listed
   WHERE (created_at, job_id) < (:createdAt, :beforeId::uuid)`,
)

function* readWalked(part: PartQuery, walked: number): Steps<JobsPart> {
  const { accountId, pool, batchId, statuses, limit, before, now } = part
  const [createdAt, beforeId] = before
  const [[key, value] = ['', ''], ...others] = part.labels
  const labels = batchId === null ? others : part.labels
  const fits = { keys: labels.map(([key]) => key), values: labels.map(([, value]) => value), statuses, now, pool }
  const range = { accountId, createdAt, beforeId, limit, walked, ...fits }
  const rows = yield* batchId === null
    ? all(LIST_LABELLED, { ...range, key, value })
    : all(LIST_BATCH, { ...range, batchId })
  const [head] = rows
  const found = yield* toPart(rows.filter(({ isFound }) => isFound))
  if (head === undefined || found.resumeBefore !== null || found.jobs.length === limit || head.walked < walked)
    return found
  return { jobs: found.jobs, resumeBefore: [head.lastCreatedAt, head.lastJobId] }
}

export const jobLists = defineStore<JobLists>('jobLists', {
  readPart: read(function* (part, walked) {
    const isPlain = part.batchId === null && part.labels.length === 0
    return yield* isPlain ? readPlain(part) : readWalked(part, walked)
  }),
})
