/**
 * Reads of one job. A job of another account and one past its retention look exactly like one that never was. On Postgres a job is in
 * `job` while it lives and in `job_done` afterwards: one statement asks both, so it is never found in both and never in neither.
 */
import { isUuid } from '../../../../../lib/ids.ts'
import type { Job, JobLog, Output } from '../../../../domain/jobs/job.ts'
import { type JobRow, toJob } from '../../rows/jobs/job.ts'
import { all, get, type Steps } from '../../statements/operation.ts'
import { query, type Words } from '../../statements/statement.ts'
import { jobRow, outputRow } from '../../tables/jobs.ts'
import { flag, json, moment, nullable, pick, type RowOf, shape, text } from '../../tables/table.ts'
import { findPositions } from '../queue-positions.ts'

/** The columns of a job that lives. */
export function LIVE_COLUMNS({ dialect }: Words): string {
  if (dialect === 'sqlite') return jobRow.columns
  return `seq, id, account_id, pool, status, priority, created_at, started_at, NULL::bigint AS completed_at, expires_at, attempt, version,
    output_count, outputs_reused, outputs_replaced, metadata, progress, NULL::text AS error, NULL::uuid AS reused_from,
    not_before, queue_until`
}

/** Live jobs past their deadline still show, until the sweep makes them `expired`; those show until they are removed. */
export const IS_RETAINED = `(expires_at > :now OR status NOT IN ('succeeded', 'failed', 'canceled'))`

/** The job of an account by its id, from wherever it is, with these columns. */
function selectVisible(words: Words, live: string, done: string): string {
  const ofAccount = 'id = :jobId AND account_id = :accountId'
  return words.either(
    `SELECT ${live} FROM job WHERE ${ofAccount} AND ${IS_RETAINED}`,
    `SELECT ${live} FROM job WHERE ${ofAccount} UNION ALL SELECT ${done} FROM job_done WHERE ${ofAccount} AND ${IS_RETAINED}`,
  )
}

const FIND = query('jobs.findOne', jobRow, (words) => selectVisible(words, LIVE_COLUMNS(words), jobRow.columns))

export function* findVisible(accountId: string, jobId: string, now: Date): Steps<JobRow | null> {
  if (!isUuid(jobId)) return null
  return (yield* get(FIND, { accountId, jobId, now })) ?? null
}

/** A job with what it lists, both of the same instant. */
export const foundJob = shape({ ...jobRow.fields, outputs: nullable(json<readonly Output[]>()) })
export type FoundJob = RowOf<typeof foundJob>

/** The column `outputs` of `foundJob`, for the job in the row `name`. */
export function outputsOf({ either }: Words, name: string): string {
  const fields = (
    id: string,
  ) => `'assetId', ${id}, 'nodeId', node_id, 'name', name, 'type', type, 'contentType', content_type,
    'sizeBytes', size_bytes, 'hash', hash`
  return `CASE WHEN ${name}.output_count > 0 THEN (${either(
    `SELECT json_group_array(json_object(${fields('asset_id')}))
     FROM (SELECT * FROM job_output WHERE seq = ${name}.seq ORDER BY position)`,
    `SELECT json_agg(json_build_object(${fields('listed.id')}) ORDER BY position)::text FROM output AS listed
     WHERE job_id = ${name}.id AND expires_at = ${name}.expires_at AND position IS NOT NULL`,
  )}) END`
}

const FIND_ALL = query('jobs.find', foundJob, (words) =>
  words.either(
    `SELECT ${jobRow.columns}, ${outputsOf(words, 'job')} AS outputs FROM job WHERE ${words.isIn('id', ':ids')}`,
    `WITH found AS MATERIALIZED (
       SELECT ${LIVE_COLUMNS(words)} FROM job WHERE id = ANY(:ids::uuid[])
       UNION ALL SELECT ${jobRow.columns} FROM job_done WHERE id = ANY(:ids::uuid[]))
     SELECT found.*, ${outputsOf(words, 'found')} AS outputs FROM found`,
  ),
)

export interface JobQuery {
  readonly accountId: string
  readonly jobId: string
  readonly now: Date
}

/** One answer for each, in their order. */
export function* findJobs(queries: readonly JobQuery[]): Steps<(Job | null)[]> {
  const ids = [...new Set(queries.map(({ jobId }) => jobId).filter(isUuid))]
  if (ids.length === 0) return queries.map(() => null)
  const jobs = new Map((yield* addPositions(yield* all(FIND_ALL, { ids }))).map((job) => [job.id, job]))
  return queries.map(({ accountId, jobId, now }) => {
    const job = jobs.get(jobId)
    if (job?.accountId !== accountId) return null
    const mustBeRetained = job.completedAt !== null && job.status !== 'expired'
    return !mustBeRetained || job.expiresAt > now ? job : null
  })
}

/** Those that wait are told their positions in the queue. */
export function* addPositions(rows: readonly FoundJob[]): Steps<Job[]> {
  const positions = yield* findPositions(rows.filter(({ status }) => status === 'queued'))
  return rows.map((row) =>
    toJob(row, row.outputs ?? [], row.status === 'queued' ? (positions.get(row.seq) ?? 1) : null),
  )
}

const LIST_OUTPUTS = query('jobs.listOutputs', outputRow, ({ either }) =>
  either(
    `SELECT ${outputRow.columns} FROM job_output WHERE seq = :seq ORDER BY position`,
    `SELECT id AS asset_id, node_id, name, type, content_type, size_bytes, hash FROM output
     WHERE job_id = :id AND expires_at = :expiresAt AND position IS NOT NULL ORDER BY position`,
  ),
)

/** What a job lists. Costs nothing where there is none. */
export function* listOutputs(job: JobRow): Steps<readonly Output[]> {
  return job.outputCount === 0 ? [] : yield* readOutputs(job)
}

export function* readOutputs({
  seq,
  id,
  expiresAt,
}: Pick<JobRow, 'seq' | 'id' | 'expiresAt'>): Steps<readonly Output[]> {
  return yield* all(LIST_OUTPUTS, { seq, id, expiresAt })
}

const owner = pick(jobRow, 'accountId')
const FIND_OWNER = query('jobs.findOwner', owner, ({ either }) =>
  either(
    'SELECT account_id FROM job WHERE id = :jobId',
    'SELECT account_id FROM job WHERE id = :jobId UNION ALL SELECT account_id FROM job_done WHERE id = :jobId',
  ),
)

export function* findOwner(jobId: string): Steps<string | null> {
  if (!isUuid(jobId)) return null
  return (yield* get(FIND_OWNER, { jobId }))?.accountId ?? null
}

const holder = shape({ id: text(), workerId: text() })
const FIND_HOLDERS = query(
  'jobs.findHolders',
  holder,
  ({ either }) => `SELECT ${holder.columns} FROM job
    WHERE ${either('id IN (SELECT value FROM json_each(:jobIds))', 'id = ANY(:jobIds::uuid[])')}
      AND status IN ('running', 'canceling') AND lease_id IS NOT NULL AND worker_id IS NOT NULL`,
)

export function* findHolders(jobIds: readonly string[]): Steps<ReadonlyMap<string, string>> {
  return new Map(
    (yield* all(FIND_HOLDERS, { jobIds: jobIds.filter(isUuid) })).map(({ id, workerId }) => [id, workerId]),
  )
}

function beside(words: Words, sqliteTable: string, postgresTable: string, columns: string): string {
  const visible = selectVisible(words, words.either('seq', 'id, expires_at'), 'id, expires_at')
  return words.either(
    `SELECT ${columns} FROM (${visible}) AS visible JOIN ${sqliteTable} USING (seq)`,
    `SELECT ${columns} FROM (${visible}) AS visible JOIN ${postgresTable} AS kept
     ON kept.job_id = visible.id AND kept.expires_at = visible.expires_at`,
  )
}

const FIND_WORKFLOW = query('jobs.findWorkflow', shape({ workflow: text() }), (words) =>
  beside(words, 'job_workflow', 'job_text', words.either('text AS workflow', 'workflow')),
)

export function* findWorkflow(accountId: string, jobId: string, now: Date): Steps<string | null> {
  if (!isUuid(jobId)) return null
  return (yield* get(FIND_WORKFLOW, { accountId, jobId, now }))?.workflow ?? null
}

const log = shape({
  text: text(),
  truncated: flag('boolean'),
  capturedAt: moment(),
  complete: flag('boolean'),
  marks: nullable(text()),
})
const FIND_LOG = query('jobs.findLog', log, (words) => beside(words, 'job_log', 'job_log', log.columns))

export function* findLog(accountId: string, jobId: string, now: Date): Steps<JobLog | null> {
  const found = isUuid(jobId) ? yield* get(FIND_LOG, { accountId, jobId, now }) : undefined
  if (found === undefined) return null
  const { marks, ...rest } = found
  return marks === null ? rest : { ...rest, marks }
}
