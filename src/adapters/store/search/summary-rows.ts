/** Jobs in short by their ids, what is told of one beside its summary, and the outputs of many. */
import { isUuid } from '../../../../lib/ids.ts'
import type { JobError, Output, OutputType, Progress } from '../../../domain/jobs/job.ts'
import { toToldJob } from '../../../domain/jobs/outputs/hidden-runs.ts'
import { readOrigin, titleOf } from '../../../domain/jobs/submit/job-origin.ts'
import {
  type JobDetails,
  type JobSummary,
  type OutputsOf,
  SUMMARY_MESSAGE_LENGTH,
  type SummaryScope,
} from '../../../domain/jobs/summaries/summary-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { toAttempts } from '../rows/jobs/attempt-fields.ts'
import { toPriority } from '../rows/jobs/job.ts'
import { all, get, type Steps } from '../statements/operation.ts'
import { both, query, toRows } from '../statements/statement.ts'
import { findPositions } from '../stores/queue-positions.ts'
import { integer, json, moment, nullable, type RowOf, shape, text } from '../tables/table.ts'

const summaryRow = shape({
  seq: integer(),
  id: text(),
  accountId: text(),
  pool: text(),
  status: text<JobStatus>(),
  priority: integer(),
  attempt: integer(),
  version: integer(),
  createdAt: moment(),
  startedAt: nullable(moment()),
  completedAt: nullable(moment()),
  expiresAt: moment(),
  outputCount: integer(),
  engineId: nullable(text()),
  metadata: nullable(json<Readonly<Record<string, string>>>()),
  progress: nullable(json<Progress>()),
  /** JSON, without its traceback, and then perhaps without the brace behind it. */
  error: nullable(text()),
  title: nullable(text()),
  charged: nullable(integer()),
  thumbId: nullable(text()),
  reusedFrom: nullable(text()),
  notBefore: nullable(moment()),
  queueUntil: nullable(moment()),
})

/**
 * Where the traceback begins in the JSON of an error, which nobody reads in a list; it is the last member. Inside of a text every quote
 * has a backslash before it, so these letters stand nowhere else.
 */
const TRACEBACK = `',"traceback":'`
const SHARED = `seq, id, account_id, pool, status, priority, attempt, version, created_at, started_at, expires_at, output_count, engine_id,
  metadata, progress, not_before, queue_until`

const recipeTitle = (job: string) =>
  `coalesce(title, (SELECT title FROM job_recipe WHERE job_recipe.account_id = ${job}.account_id AND job_recipe.recipe = ${job}.recipe)) AS title`
const charge = (job: string) =>
  `(SELECT charged FROM ledger_entry WHERE reference = 'job:' || ${job}.id AND kind IN ('settle', 'release') LIMIT 1)`

const SQLITE_FIND = `
  SELECT ${SHARED}, completed_at,
    iif(instr(error, ${TRACEBACK}) > 0, substr(error, 1, instr(error, ${TRACEBACK}) - 1) || '}', error) AS error, ${recipeTitle('job')},
    iif(price_second IS NULL OR completed_at IS NULL, NULL, ${charge('job')}) AS charged,
    iif(output_count = 0, NULL, (
      SELECT asset_id FROM job_output WHERE job_output.seq = job.seq AND type = 'image' ORDER BY position LIMIT 1)) AS thumb_id, reused_from
  FROM (SELECT value FROM json_each(:ids)) AS asked CROSS JOIN job ON job.id = asked.value
  WHERE (:scope IS NULL OR account_id = :scope) AND (expires_at > :now OR status NOT IN ('succeeded', 'failed', 'canceled'))`

const DONE = `SELECT ${SHARED}, completed_at, error, recipe, title, reused_from FROM job_done`
const IS_OWN = `(:scope::text IS NULL OR account_id = :scope) AND (job_done.expires_at > :now OR status = 'expired')`
// The error is asked for once: a long text is unpacked each time.
const postgresFind = (done: string) => `
  WITH found AS MATERIALIZED (
    SELECT ${SHARED}, NULL::bigint AS completed_at, NULL::text AS error, recipe, title, NULL::uuid AS reused_from
    FROM job WHERE id = ANY(:ids::uuid[]) AND (:scope::text IS NULL OR account_id = :scope)
    UNION ALL ${done})
  SELECT ${SHARED}, completed_at, split_part(error, ${TRACEBACK}, 1) AS error, ${recipeTitle('found')},
    CASE WHEN completed_at IS NOT NULL THEN ${charge('found')} END AS charged,
    CASE WHEN output_count > 0 THEN (
      SELECT output.id FROM output WHERE job_id = found.id AND output.expires_at = found.expires_at
        AND position IS NOT NULL AND type = 'image' ORDER BY position LIMIT 1) END AS thumb_id,
    reused_from::text AS reused_from
  FROM found`

const FIND = query(
  'search.summaries',
  summaryRow,
  both({ sqlite: SQLITE_FIND, postgres: postgresFind(`${DONE} WHERE id = ANY(:ids::uuid[]) AND ${IS_OWN}`) }),
)
// In Postgres ended jobs are kept by ranges of their expiry: whoever knows it looks into one of them for each job, and not into all.
const FIND_DATED = query(
  'search.dated_summaries',
  summaryRow,
  both({
    sqlite: SQLITE_FIND,
    postgres:
      postgresFind(`SELECT done.* FROM unnest(:ids::uuid[], :expiries::bigint[]) AS asked(id, expires_at) CROSS JOIN LATERAL (
      ${DONE} WHERE job_done.id = asked.id AND job_done.expires_at = asked.expires_at AND ${IS_OWN} OFFSET 0) AS done`),
  }),
)

export function* findSummaries(scope: SummaryScope, jobIds: readonly string[], now: Date): Steps<JobSummary[]> {
  const ids = jobIds.filter(isUuid)
  return ids.length === 0 ? [] : yield* complete(yield* all(FIND, { ids, scope, now }))
}

interface DatedJob {
  readonly id: string
  readonly expiresAt: number
}

/** In the order of the jobs. */
export function* findDatedSummaries(scope: SummaryScope, jobs: readonly DatedJob[], now: Date): Steps<JobSummary[]> {
  if (jobs.length === 0) return []
  const values = { ids: jobs.map(({ id }) => id), expiries: jobs.map(({ expiresAt }) => expiresAt), scope, now }
  const found = new Map((yield* complete(yield* all(FIND_DATED, values))).map((summary) => [summary.id, summary]))
  return jobs.map(({ id }) => found.get(id)).filter((summary) => summary !== undefined)
}

function* complete(rows: readonly RowOf<typeof summaryRow>[]): Steps<JobSummary[]> {
  const positions = yield* findPositions(rows.filter(({ status }) => status === 'queued'))
  return rows.map((row) => toSummary(row, row.status === 'queued' ? (positions.get(row.seq) ?? 1) : null))
}

function toSummary(row: RowOf<typeof summaryRow>, queuePosition: number | null): JobSummary {
  const { seq: _, outputCount: outputs, thumbId, error, title, ...rest } = row
  const metadata = rest.metadata ?? {}
  const failed = error === null ? null : (JSON.parse(error.endsWith('}') ? error : `${error}}`) as JobError)
  const told = toToldJob({ metadata, error: failed, progress: rest.progress })
  return {
    ...rest,
    ...{ metadata, outputs, queuePosition, progress: told.progress, priority: toPriority(rest.priority) },
    title: titleOf(metadata, title),
    engineId: rest.status === 'queued' ? null : rest.engineId,
    error: told.error && toError(told.error),
    thumb: thumbId === null ? null : { assetId: thumbId },
  }
}

function toError({ code, message, nodeId, classType }: JobError): JobSummary['error'] {
  return { code, message: message.slice(0, SUMMARY_MESSAGE_LENGTH), nodeId, classType }
}

// A batch has the times of its jobs, and these lead to it: a job itself knows nothing of it.
const BESIDE = query(
  'search.beside',
  shape({
    ...{ attempts: nullable(text()), terms: nullable(text()), held: nullable(integer()) },
    ...{ origin: nullable(text()), batchId: nullable(text()) },
  }),
  ({ either }) => `
    SELECT attempts,
      (SELECT terms FROM job_recipe WHERE job_recipe.account_id = found.account_id AND job_recipe.recipe = found.recipe) AS terms,
      (SELECT held FROM ledger_entry WHERE reference = 'job:' || found.id AND kind = 'hold') AS held,
      (SELECT origin FROM ${either(
        'job_workflow WHERE job_workflow.seq = found.seq',
        'job_text WHERE job_id = found.id AND job_text.expires_at = found.expires_at',
      )}) AS origin,
      (SELECT ${either('job_batch.id', 'job_batch.id::text')} FROM job_batch ${either('INDEXED BY job_batch_expiry', '')}
       WHERE job_batch.expires_at = found.expires_at AND job_batch.created_at = found.created_at
         AND job_batch.account_id = found.account_id
         AND ${either(`instr(jobs, '"' || found.id || '"')`, `strpos(jobs, '"' || found.id || '"')`)} > 0) AS batch_id
    FROM ${either(
      'job AS found WHERE id = :jobId',
      `(SELECT id, account_id, recipe, attempts, created_at, expires_at FROM job WHERE id = :jobId
        UNION ALL SELECT id, account_id, recipe, attempts, created_at, expires_at FROM job_done WHERE id = :jobId) AS found`,
    )}`,
)

export function* findDetails(accountId: string, jobId: string, now: Date): Steps<JobDetails | null> {
  const [summary] = yield* findSummaries(accountId, [jobId], now)
  const beside = summary === undefined ? undefined : yield* get(BESIDE, { jobId })
  if (summary === undefined || beside === undefined) return null
  return { ...beside, summary, attempts: toAttempts(beside.attempts), origin: readOrigin(beside.origin) }
}

const OUTPUTS = query(
  'search.outputs',
  shape({
    ...{ jobId: text(), assetId: text(), nodeId: text(), name: text(), type: text<OutputType>() },
    ...{ contentType: text(), sizeBytes: integer(), hash: text() },
  }),
  both({
    sqlite: `
      SELECT job.id AS job_id, asset_id, node_id, name, type, content_type, size_bytes, hash
      FROM (SELECT value->>'id' AS id FROM json_each(:jobs)) AS asked CROSS JOIN job ON job.id = asked.id AND job.account_id = :accountId
      CROSS JOIN job_output ON job_output.seq = job.seq ORDER BY job.seq, position`,
    postgres: `
      SELECT listed.* FROM unnest(:jobs.id::uuid[], :jobs.expires_at::bigint[]) AS asked(id, expires_at) CROSS JOIN LATERAL (
        SELECT job_id::text, id AS asset_id, node_id, name, type, content_type, size_bytes, hash FROM output
        WHERE job_id = asked.id AND output.expires_at = asked.expires_at AND account_id = :accountId AND position IS NOT NULL
        ORDER BY position OFFSET 0) AS listed`,
  }),
)

export function* findListedOutputs(
  accountId: string,
  jobs: readonly OutputsOf[],
): Steps<ReadonlyMap<string, readonly Output[]>> {
  const asked = jobs.filter(({ id }) => isUuid(id)).map(({ id, expiresAt }) => ({ id, expires_at: expiresAt }))
  if (asked.length === 0) return new Map()
  const rows = yield* all(OUTPUTS, { accountId, ...toRows('jobs', asked) })
  const byJob = Map.groupBy(rows, ({ jobId }) => jobId)
  return new Map([...byJob].map(([id, outputs]) => [id, outputs.map(({ jobId: _, ...output }) => output)]))
}
