/**
 * Jobs with how they were submitted and what their runs showed, for one account: one of them, the queue as it stands, the
 * history in the order in which runs ended, and a filtered list. Long texts are read only as far as a budget goes, so that
 * one caller's history never keeps a connection and this process from everybody else.
 */

import { isUuid } from '../../../../../../lib/ids.ts'
import type { HistoryRange, JobFilter } from '../../../../../domain/jobs/read/recorded-jobs.ts'
import { isTerminal, type JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type StoredJob } from '../../../rows/jobs/job-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { addPositions, type FoundJob, type JobQuery, outputsOf } from './find-job.ts'
import { DONE_COLUMNS, LIVE_COLUMNS } from './job-row.ts'
import type { SubmissionRow } from './write-run-records.ts'

export interface StoredRecord {
  readonly job: StoredJob
  readonly workflow: string
  readonly submission: SubmissionRow | null
  readonly run: string | null
  readonly isHidden: boolean
}

type Parts = readonly [
  workflow: string | null,
  workflowId: string | null,
  submission: string | null,
  run: string | null,
  isHidden: boolean,
]
type RecordRow = readonly [...FoundJob, ...Parts]

const PART_COUNT = 5
// About what the row of an output takes.
const OUTPUT_LENGTH = 300
const BUDGET = 16 * 1024 * 1024

// Everything that ended until then is out of the history. $1 is the account.
const CLEARED = 'coalesce((SELECT at FROM history_clear WHERE account_id = $1), -1)'
const LIVE_RECORD = `${LIVE_COLUMNS}, NULL::text AS run, false AS is_hidden`
const DONE_RECORD = `${DONE_COLUMNS}, run, is_hidden OR completed_at <= ${CLEARED} AS is_hidden`

/** From `listed`, rows of records with their `place`: adds the texts. `keepsBare`: rows beyond the budget come without them. */
function withTexts({ keepsBare }: { readonly keepsBare: boolean }): string {
  const columns = DONE_COLUMNS.split(',')
    .map((column) => `measured.${column.trim()}`)
    .join(', ')
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
    SELECT ${columns}, CASE WHEN measured.is_within THEN ${outputsOf('measured')} END AS outputs, ${text('workflow')} AS workflow,
      ${text('workflow_id')} AS workflow_id, ${text('submission')} AS submission, ${text('run')} AS run, measured.is_hidden,
      measured.place
    FROM measured ${keepsBare ? '' : 'WHERE measured.is_within'})`
}

const RECORD = `${DONE_COLUMNS}, outputs, workflow, workflow_id, submission, run, is_hidden`

const FIND = statement<RecordRow>(
  'records.find',
  `WITH listed AS MATERIALIZED (
     SELECT ${LIVE_RECORD}, 1 AS place FROM job WHERE id = $2 AND account_id = $1
     UNION ALL
     SELECT ${DONE_RECORD}, 1 AS place FROM job_done
     WHERE id = $2 AND account_id = $1 AND (expires_at > $3 OR status = 'expired')),
   ${withTexts({ keepsBare: true })}
   SELECT ${RECORD} FROM record`,
)

export async function findRecord(read: Queryable, { accountId, jobId, now }: JobQuery): Promise<StoredRecord | null> {
  if (!isUuid(jobId)) return null
  const [record = null] = await toRecords(read, await read.all(FIND, [accountId, jobId, now]))
  return record
}

const LIST_LIVE = statement<RecordRow>(
  'records.list_live',
  `WITH held AS (
     SELECT ${LIVE_RECORD} FROM job WHERE account_id = $1 AND status IN ('running', 'canceling')
     ORDER BY started_at, seq LIMIT $2),
   waiting AS (
     SELECT ${LIVE_RECORD} FROM job WHERE account_id = $1 AND status = 'queued' ORDER BY priority DESC, seq LIMIT $2),
   listed AS MATERIALIZED (
     SELECT *, row_number() OVER (ORDER BY started_at, seq) AS place FROM held
     UNION ALL
     SELECT *, $2 + row_number() OVER (ORDER BY priority DESC, seq) AS place FROM waiting),
   ${withTexts({ keepsBare: true })}
   SELECT ${RECORD} FROM record ORDER BY place`,
)

export async function listLive(read: Queryable, accountId: string, limit: number): Promise<StoredRecord[]> {
  const rows = await read.all(LIST_LIVE, [accountId, limit])
  // Jobs that come before a job in its queue are listed before it, so counting them gives its position.
  const counts = new Map<string, number>()
  return rows.map((row) => {
    const found = toFound(row)
    const pool = found[COLUMN.pool]
    const isWaiting = found[COLUMN.status] === 'queued'
    if (isWaiting) counts.set(pool, (counts.get(pool) ?? 0) + 1)
    return toRecord(toStored(found, isWaiting ? (counts.get(pool) ?? 1) : null), row)
  })
}

interface HistoryInput extends HistoryRange {
  readonly accountId: string
  readonly now: number
}

/** The condition as a range of the index, so that a history that was cleared costs nothing to skip. */
const HISTORY = `SELECT ${DONE_RECORD} FROM job_done
  WHERE account_id = $1 AND completed_at > ${CLEARED} AND status IN ('succeeded', 'failed', 'canceled')
    AND started_at IS NOT NULL AND expires_at > $2 AND NOT is_hidden`

function historyStatement(name: string, order: string, rest: string) {
  return statement<RecordRow>(
    name,
    `WITH found AS MATERIALIZED (${HISTORY} ORDER BY completed_at ${order}, seq ${order} ${rest}),
     listed AS (SELECT *, row_number() OVER (ORDER BY completed_at ${order}, seq ${order}) AS place FROM found),
     ${withTexts({ keepsBare: false })}
     SELECT ${RECORD} FROM record ORDER BY place`,
  )
}

const LIST_NEWEST = historyStatement('records.list_newest', 'DESC', 'LIMIT $3')
const LIST_FROM = historyStatement('records.list_from', 'ASC', 'LIMIT $3 OFFSET $4')

/** In the order of their ends. When not everything fits, the newest of the range are the ones that do. */
export async function listHistory(read: Queryable, input: HistoryInput): Promise<StoredRecord[]> {
  const { accountId, now, maxItems, offset } = input
  if (offset !== null) return toRecords(read, await read.all(LIST_FROM, [accountId, now, maxItems, offset]))
  return (await toRecords(read, await read.all(LIST_NEWEST, [accountId, now, maxItems]))).reverse()
}

interface SelectInput extends Omit<JobFilter, 'statuses'> {
  readonly accountId: string
  readonly now: number
  readonly statuses: readonly JobStatus[]
}

interface SelectAnswer {
  readonly records: readonly StoredRecord[]
  readonly total: number
}

// As many as ComfyUI's own history holds: beyond that a list is no longer looked through.
const LISTED_MAX = 10_000

/** $5 workflow id, $6 type of output; null: any. */
function isSelected(table: 'job' | 'job_done'): string {
  return `($5::text IS NULL OR EXISTS (
      SELECT 1 FROM job_text WHERE job_id = ${table}.id AND expires_at = ${table}.expires_at AND workflow_id = $5))
    AND ($6::text IS NULL OR ${table}.output_count > 0 AND EXISTS (
      SELECT 1 FROM output WHERE job_id = ${table}.id AND expires_at = ${table}.expires_at AND position IS NOT NULL
        AND CASE $6 WHEN '3d' THEN name ~* '\\.(obj|fbx|usdz)$|\\.gl[bt]' ELSE type = $6 END))`
}

// $1 account, $2 live statuses, $3 ended ones, $4 since when each must be retained, $7 limit, $8 offset
function selectStatement(sortBy: JobFilter['sortBy'], order: JobFilter['order']) {
  const key = sortBy === 'created_at' ? 'created_at' : 'duration'
  return statement<readonly [total: number, ...RecordRow] | readonly [total: number, null]>(
    `records.select_${key}_${order}`,
    `WITH matching AS MATERIALIZED (
       SELECT * FROM (
         (SELECT id, expires_at, created_at, seq, 0::bigint AS duration FROM job
          WHERE account_id = $1 AND status = ANY($2::text[]) AND ${isSelected('job')}
          ORDER BY created_at DESC LIMIT ${LISTED_MAX})
         UNION ALL
         SELECT done.* FROM unnest($3::text[], $4::bigint[]) AS asked(status, since) CROSS JOIN LATERAL (
           SELECT id, expires_at, created_at, seq, coalesce(completed_at - started_at, 0) AS duration FROM job_done
           WHERE account_id = $1 AND status = asked.status AND expires_at > asked.since AND NOT is_hidden
             AND completed_at > ${CLEARED} AND ${isSelected('job_done')}
           ORDER BY created_at DESC LIMIT ${LISTED_MAX}) AS done) AS both_kinds
       ORDER BY created_at DESC LIMIT ${LISTED_MAX}),
     page AS MATERIALIZED (
       SELECT id, expires_at, row_number() OVER (ORDER BY ${key} ${order}, seq ${order}) AS place FROM matching
       ORDER BY ${key} ${order}, seq ${order} LIMIT $7 OFFSET $8),
     listed AS MATERIALIZED (
       SELECT row.*, page.place FROM page CROSS JOIN LATERAL (
         SELECT ${LIVE_RECORD} FROM job WHERE id = page.id
         UNION ALL
         SELECT ${DONE_RECORD} FROM job_done WHERE id = page.id AND expires_at = page.expires_at) AS row),
     ${withTexts({ keepsBare: true })}
     SELECT counted.total, ${RECORD} FROM (SELECT count(*) AS total FROM matching) AS counted LEFT JOIN record ON true
     ORDER BY place`,
  )
}

const SELECTS = {
  created_at: { asc: selectStatement('created_at', 'asc'), desc: selectStatement('created_at', 'desc') },
  execution_duration: {
    asc: selectStatement('execution_duration', 'asc'),
    desc: selectStatement('execution_duration', 'desc'),
  },
}

export async function selectJobs(read: Queryable, input: SelectInput): Promise<SelectAnswer> {
  const { accountId, now, workflowId, outputType, sortBy, order, limit, offset } = input
  const ended = input.statuses.filter(isTerminal)
  const rows = await read.all(SELECTS[sortBy][order], [
    accountId,
    input.statuses.filter((status) => !isTerminal(status)),
    ended,
    ended.map((status) => (status === 'expired' ? Number.MIN_SAFE_INTEGER : now)),
    ...[workflowId, outputType, limit, offset],
  ])
  const records = rows.filter((row) => row[1] !== null).map((row) => row.slice(1) as unknown as RecordRow)
  return { records: await toRecords(read, records), total: rows[0]?.[0] ?? 0 }
}

function toFound(row: RecordRow): FoundJob {
  return row.slice(0, -PART_COUNT) as unknown as FoundJob
}

function toStored(found: FoundJob, position: number | null): StoredJob {
  const outputs = found.at(-1) as StoredJob[1]
  return [found.slice(0, -1) as unknown as StoredJob[0], outputs, position]
}

async function toRecords(read: Queryable, rows: readonly RecordRow[]): Promise<StoredRecord[]> {
  const jobs = await addPositions(read, rows.map(toFound))
  return rows.map((row, index) => toRecord(jobs[index] as StoredJob, row))
}

function toRecord(job: StoredJob, row: RecordRow): StoredRecord {
  const [workflow, workflowId, text, run, isHidden] = row.slice(-PART_COUNT) as unknown as Parts
  // A job without its texts: the reader of a long queue still learns that it is there.
  return { job, workflow: workflow ?? '{}', submission: text === null ? null : { workflowId, text }, run, isHidden }
}
