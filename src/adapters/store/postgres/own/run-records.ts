/**
 * Jobs with how they were submitted and what their runs showed, for one account: one of them, the queue as it stands, the
 * history in the order in which runs ended, and a filtered list. Long texts are read only as far as a budget goes, so that
 * one caller's history never keeps a connection and this process from everybody else.
 */
import { isUuid } from '../../../../../lib/ids.ts'
import { isTerminal } from '../../../../domain/jobs/transitions.ts'
import { toJob } from '../../rows/jobs/job.ts'
import type { StoredRecord } from '../../rows/jobs/recorded-job.ts'
import { all, defineStore, read, type Steps } from '../../statements/operation.ts'
import { postgresOnly, query, type Words } from '../../statements/statement.ts'
import { addPositions, foundJob, LIVE_COLUMNS, outputsOf } from '../../stores/jobs/find-job.ts'
import type { RecordFilter, RecordReads } from '../../stores/run-record-store.ts'
import { jobRow } from '../../tables/jobs.ts'
import { columnsOf, flag, integer, nullable, type RowOf, shape, text } from '../../tables/table.ts'

const recordRow = shape({
  ...foundJob.fields,
  workflow: nullable(text()),
  workflowId: nullable(text()),
  submission: nullable(text()),
  run: nullable(text()),
  isHidden: flag('boolean'),
})
type RecordRow = RowOf<typeof recordRow>

// About what the row of an output takes.
const OUTPUT_LENGTH = 300
const BUDGET = 16 * 1024 * 1024

// Everything that ended until then is out of the history.
const CLEARED = 'coalesce((SELECT at FROM history_clear WHERE account_id = :accountId), -1)'
const LIVE_RECORD = (words: Words) => `${LIVE_COLUMNS(words)}, NULL::text AS run, false AS is_hidden`
const DONE_RECORD = `${jobRow.columns}, run, is_hidden OR completed_at <= ${CLEARED} AS is_hidden`

/** From `listed`, rows of records with their `place`: adds the texts. `keepsBare`: rows beyond the budget come without them. */
function withTexts(words: Words, { keepsBare }: { readonly keepsBare: boolean }): string {
  const columns = columnsOf(jobRow.fields).map((column) => `measured.${column}`)
  const text = (name: string) => `CASE WHEN measured.is_within THEN measured.${name} END`
  return `
  measured AS (
    SELECT listed.*, text.workflow, text.workflow_id, text.submission, coalesce(sum(
      coalesce(octet_length(text.workflow), 0) + coalesce(octet_length(text.submission), 0)
      + coalesce(octet_length(listed.run), 0) + ${OUTPUT_LENGTH} * listed.output_count) OVER (
        ORDER BY listed.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) < ${BUDGET} AS is_within
    FROM listed LEFT JOIN LATERAL (
      SELECT workflow, workflow_id, submission FROM job_text
      WHERE job_id = listed.id AND expires_at = listed.expires_at OFFSET 0) AS text ON true),
  record AS (
    SELECT ${columns}, CASE WHEN measured.is_within THEN ${outputsOf(words, 'measured')} END AS outputs, ${text('workflow')} AS workflow,
      ${text('workflow_id')} AS workflow_id, ${text('submission')} AS submission, ${text('run')} AS run, measured.is_hidden,
      measured.place
    FROM measured ${keepsBare ? '' : 'WHERE measured.is_within'})`
}

const RECORD = recordRow.columns

const FIND = query(
  'records.find',
  recordRow,
  postgresOnly(
    (words) => `WITH listed AS MATERIALIZED (
     SELECT ${LIVE_RECORD(words)}, 1 AS place FROM job WHERE id = :jobId AND account_id = :accountId
     UNION ALL
     SELECT ${DONE_RECORD}, 1 AS place FROM job_done
     WHERE id = :jobId AND account_id = :accountId AND (expires_at > :now OR status = 'expired')),
   ${withTexts(words, { keepsBare: true })}
   SELECT ${RECORD} FROM record`,
  ),
)

const LIST_LIVE = query(
  'records.list_live',
  recordRow,
  postgresOnly(
    (words) => `WITH held AS (
     SELECT ${LIVE_RECORD(words)} FROM job WHERE account_id = :accountId AND status IN ('running', 'canceling')
     ORDER BY started_at, seq LIMIT :limit),
   waiting AS (
     SELECT ${LIVE_RECORD(words)} FROM job WHERE account_id = :accountId AND status = 'queued' ORDER BY priority DESC, seq LIMIT :limit),
   listed AS MATERIALIZED (
     SELECT *, row_number() OVER (ORDER BY started_at, seq) AS place FROM held
     UNION ALL
     SELECT *, :limit + row_number() OVER (ORDER BY priority DESC, seq) AS place FROM waiting),
   ${withTexts(words, { keepsBare: true })}
   SELECT ${RECORD} FROM record ORDER BY place`,
  ),
)

/** The condition as a range of the index, so that a history that was cleared costs nothing to skip. */
const HISTORY = `SELECT ${DONE_RECORD} FROM job_done
  WHERE account_id = :accountId AND completed_at > ${CLEARED} AND status IN ('succeeded', 'failed', 'canceled')
    AND started_at IS NOT NULL AND expires_at > :now AND NOT is_hidden`

function historyStatement(name: string, order: string, rest: string) {
  return query(
    name,
    recordRow,
    postgresOnly(
      (words) => `WITH found AS MATERIALIZED (${HISTORY} ORDER BY completed_at ${order}, seq ${order} ${rest}),
     listed AS (SELECT *, row_number() OVER (ORDER BY completed_at ${order}, seq ${order}) AS place FROM found),
     ${withTexts(words, { keepsBare: false })}
     SELECT ${RECORD} FROM record ORDER BY place`,
    ),
  )
}

const LIST_NEWEST = historyStatement('records.list_newest', 'DESC', 'LIMIT :maxItems')
const LIST_FROM = historyStatement('records.list_from', 'ASC', 'LIMIT :maxItems OFFSET :offset')

// As many as ComfyUI's own history holds: beyond that a list is no longer looked through.
const LISTED_MAX = 10_000

/** Null: any workflow, any type of output. */
function isSelected(table: 'job' | 'job_done'): string {
  return `(:workflowId::text IS NULL OR EXISTS (
      SELECT 1 FROM job_text WHERE job_id = ${table}.id AND expires_at = ${table}.expires_at AND workflow_id = :workflowId))
    AND (:outputType::text IS NULL OR ${table}.output_count > 0 AND EXISTS (
      SELECT 1 FROM output WHERE job_id = ${table}.id AND expires_at = ${table}.expires_at AND position IS NOT NULL
        AND CASE :outputType WHEN '3d' THEN name ~* '\\.(obj|fbx|usdz)$|\\.gl[bt]' ELSE type = :outputType END))`
}

const selectedRow = shape({ ...recordRow.fields, total: integer(), isFound: flag('boolean') })

/** `since`: when each of the ended statuses must be retained. */
function selectStatement(sortBy: RecordFilter['sortBy'], order: RecordFilter['order']) {
  const key = sortBy === 'created_at' ? 'created_at' : 'duration'
  return query(
    `records.select_${key}_${order}`,
    selectedRow,
    postgresOnly(
      (words) => `WITH matching AS MATERIALIZED (
       SELECT * FROM (
         (SELECT id, expires_at, created_at, seq, 0::bigint AS duration FROM job
          WHERE account_id = :accountId AND status = ANY(:live::text[]) AND ${isSelected('job')}
          ORDER BY created_at DESC LIMIT ${LISTED_MAX})
         UNION ALL
         SELECT done.* FROM unnest(:ended::text[], :since::bigint[]) AS asked(status, since) CROSS JOIN LATERAL (
           SELECT id, expires_at, created_at, seq, coalesce(completed_at - started_at, 0) AS duration FROM job_done
           WHERE account_id = :accountId AND status = asked.status AND expires_at > asked.since AND NOT is_hidden
             AND completed_at > ${CLEARED} AND ${isSelected('job_done')}
           ORDER BY created_at DESC LIMIT ${LISTED_MAX}) AS done) AS both_kinds
       ORDER BY created_at DESC LIMIT ${LISTED_MAX}),
     page AS MATERIALIZED (
       SELECT id, expires_at, row_number() OVER (ORDER BY ${key} ${order}, seq ${order}) AS place FROM matching
       ORDER BY ${key} ${order}, seq ${order} LIMIT :limit OFFSET :offset),
     listed AS MATERIALIZED (
       SELECT row.*, page.place FROM page CROSS JOIN LATERAL (
         SELECT ${LIVE_RECORD(words)} FROM job WHERE id = page.id
         UNION ALL
         SELECT ${DONE_RECORD} FROM job_done WHERE id = page.id AND expires_at = page.expires_at) AS row),
     ${withTexts(words, { keepsBare: true })}
     SELECT counted.total, place IS NOT NULL AS is_found, ${RECORD}
     FROM (SELECT count(*) AS total FROM matching) AS counted LEFT JOIN record ON true ORDER BY place`,
    ),
  )
}

const ordered = (sortBy: RecordFilter['sortBy']) => ({
  asc: selectStatement(sortBy, 'asc'),
  desc: selectStatement(sortBy, 'desc'),
})
const SELECTS = { created_at: ordered('created_at'), execution_duration: ordered('execution_duration') }

function toRecord(
  job: StoredRecord['job'],
  { workflow, workflowId, submission: text, run, isHidden }: RecordRow,
): StoredRecord {
  // A job without its texts: the reader of a long queue still learns that it is there.
  return { job, workflow: workflow ?? '{}', submission: text === null ? null : { workflowId, text }, run, isHidden }
}

function* toRecords(rows: readonly RecordRow[]): Steps<StoredRecord[]> {
  const jobs = yield* addPositions(rows)
  return rows.flatMap((row, index) => {
    const job = jobs[index]
    return job === undefined ? [] : [toRecord(job, row)]
  })
}

export const recordReads = defineStore<RecordReads>('records', {
  find: read(function* (accountId, jobId, now) {
    if (!isUuid(jobId)) return null
    const [record = null] = yield* toRecords(yield* all(FIND, { accountId, jobId, now }))
    return record
  }),
  listLive: read(function* (accountId, limit) {
    const rows = yield* all(LIST_LIVE, { accountId, limit })
    // Jobs that come before a job in its queue are listed before it, so counting them gives its position.
    const counts = new Map<string, number>()
    return rows.map((row) => {
      const isWaiting = row.status === 'queued'
      if (isWaiting) counts.set(row.pool, (counts.get(row.pool) ?? 0) + 1)
      return toRecord(toJob(row, row.outputs ?? [], isWaiting ? (counts.get(row.pool) ?? 1) : null), row)
    })
  }),
  // In the order of their ends. When not everything fits, the newest of the range are the ones that do.
  listHistory: read(function* (accountId, { maxItems, offset }, now) {
    const range = { accountId, now, maxItems }
    if (offset !== null) return yield* toRecords(yield* all(LIST_FROM, { ...range, offset }))
    return (yield* toRecords(yield* all(LIST_NEWEST, range))).reverse()
  }),
  select: read(function* (accountId, { statuses, workflowId, outputType, sortBy, order, limit, offset }, now) {
    const ended = statuses.filter(isTerminal)
    const rows = yield* all(SELECTS[sortBy][order], {
      ...{ accountId, workflowId, outputType, limit, offset, ended },
      live: statuses.filter((status) => !isTerminal(status)),
      since: ended.map((status) => (status === 'expired' ? Number.MIN_SAFE_INTEGER : now.getTime())),
    })
    return { records: yield* toRecords(rows.filter(({ isFound }) => isFound)), total: rows[0]?.total ?? 0 }
  }),
})
