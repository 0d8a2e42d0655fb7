/**
 * Jobs with how they were submitted and what their runs showed, for one account: one of them, the queue as it stands, the
 * history in the order in which runs ended, and a filtered list. Long texts are read only as far as a budget goes, so that
 * one caller's history never keeps the reader from everybody else.
 */

import type { DatabaseSync } from 'node:sqlite'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type JobRow, type StoredJob } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'
import { IS_RETAINED, type JobQuery, prepareSelectJob } from './find-job.ts'
import { type CompleteJob, JOB_COLUMNS } from './job-row.ts'
import type { SubmissionRow } from './write-run-records.ts'

export type StoredRecord = readonly [
  job: StoredJob,
  workflow: string,
  submission: SubmissionRow | null,
  run: string | null,
  isHidden: number,
]

interface RecordDeps {
  readonly completeJob: CompleteJob
}

type Parts = [
  workflow: string,
  workflowId: string | null,
  submission: string | null,
  run: string | null,
  isHidden: number,
]

// About what the row of an output takes.
const OUTPUT_LENGTH = 300
// A job without its texts; the reader of a long queue still learns that it is there.
const NO_TEXTS: Parts = ['{}', null, null, null, 0]

const IS_CLEARED = `coalesce(completed_at <= (SELECT at FROM history_clear WHERE account_id = job.account_id), 0)`
const IS_HIDDEN = `(EXISTS (SELECT 1 FROM job_hidden WHERE job_hidden.seq = job.seq) OR ${IS_CLEARED})`

function prepareReadParts(database: DatabaseSync): (row: JobRow) => Parts {
  const select = prepareRows<Parts>(
    database,
    `SELECT w.text, s.workflow_id, s.text, r.text, ${IS_HIDDEN} FROM job
     JOIN job_workflow w USING (seq) LEFT JOIN job_submission s USING (seq) LEFT JOIN job_run r USING (seq)
     WHERE seq = ?`,
  )
  return (row) => select.get(row[COLUMN.seq]) ?? NO_TEXTS
}

function toStored(job: StoredJob, [workflow, workflowId, submission, run, isHidden]: Parts): StoredRecord {
  return [job, workflow, submission === null ? null : [workflowId, submission], run, isHidden]
}

function lengthOf([, outputs]: StoredJob, [workflow, , submission, run]: Parts): number {
  return workflow.length + (submission?.length ?? 0) + (run?.length ?? 0) + OUTPUT_LENGTH * (outputs?.length ?? 0)
}

/** Adds the texts to rows until the budget is spent; further rows then come without texts (`keepsBare`), or not at all. */
function prepareComplete(database: DatabaseSync, { completeJob }: RecordDeps) {
  const readParts = prepareReadParts(database)
  return (rows: readonly JobRow[], options: { budget: number; keepsBare: boolean }): StoredRecord[] => {
    const records: StoredRecord[] = []
    let left = options.budget
    for (const row of rows) {
      if (left <= 0 && !options.keepsBare) break
      const parts = left > 0 ? readParts(row) : NO_TEXTS
      const job: StoredJob = left > 0 ? completeJob(row, records.at(-1)?.[0]) : [row, null, null]
      left -= lengthOf(job, parts)
      records.push(toStored(job, parts))
    }
    return records
  }
}

export function prepareFindRecord(
  database: DatabaseSync,
  { completeJob }: RecordDeps,
): (query: JobQuery) => StoredRecord | null {
  const selectJob = prepareSelectJob(database)
  const readParts = prepareReadParts(database)
  return ({ accountId, jobId, now }) => {
    const row = selectJob(accountId, jobId, now)
    return row === null ? null : toStored(completeJob(row), readParts(row))
  }
}

const LIVE_BUDGET = 16 * 1024 * 1024

export function prepareListLive(
  database: DatabaseSync,
  deps: RecordDeps,
): (query: { readonly accountId: string; readonly limit: number }) => StoredRecord[] {
  const selectHeld = prepareRows<JobRow>(
    database,
    `SELECT ${JOB_COLUMNS} FROM job INDEXED BY job_listing
     WHERE account_id = ? AND status IN ('running', 'canceling') ORDER BY started_at, seq LIMIT ?`,
  )
  const selectQueued = prepareRows<JobRow>(
    database,
    `SELECT ${JOB_COLUMNS} FROM job INDEXED BY job_queue
     WHERE account_id = ? AND status = 'queued' ORDER BY priority DESC, seq LIMIT ?`,
  )
  const complete = prepareComplete(database, deps)
  return ({ accountId, limit }) => {
    const rows = [...selectHeld.all(accountId, limit), ...selectQueued.all(accountId, limit)]
    return complete(rows, { budget: LIVE_BUDGET, keepsBare: true })
  }
}

interface HistoryInput {
  readonly accountId: string
  readonly now: number
  readonly maxItems: number
  /** null: the newest. */
  readonly offset: number | null
}

const HISTORY_BUDGET = 16 * 1024 * 1024

/** In the order of their ends. When not everything fits, the newest of the range are the ones that do. */
export function prepareListHistory(database: DatabaseSync, deps: RecordDeps): (input: HistoryInput) => StoredRecord[] {
  const IS_HISTORY = `account_id = ?1 AND status IN ('succeeded', 'failed', 'canceled') AND started_at IS NOT NULL
    AND expires_at > ?2 AND NOT ${IS_HIDDEN}`
  const selectNewest = prepareRows<JobRow>(
    database,
    `SELECT ${JOB_COLUMNS} FROM job INDEXED BY job_ended WHERE ${IS_HISTORY}
     ORDER BY completed_at DESC, seq DESC LIMIT ?3`,
  )
  const selectFrom = prepareRows<JobRow>(
    database,
    `SELECT ${JOB_COLUMNS} FROM job INDEXED BY job_ended WHERE ${IS_HISTORY}
     ORDER BY completed_at, seq LIMIT ?3 OFFSET ?4`,
  )
  const complete = prepareComplete(database, deps)
  return ({ accountId, now, maxItems, offset }) => {
    if (offset !== null) {
      return complete(selectFrom.all(accountId, now, maxItems, offset), { budget: HISTORY_BUDGET, keepsBare: false })
    }
    const newest = selectNewest.all(accountId, now, maxItems)
    return complete(newest, { budget: HISTORY_BUDGET, keepsBare: false }).reverse()
  }
}

interface SelectInput {
  readonly accountId: string
  readonly now: number
  readonly statuses: readonly JobStatus[]
  readonly workflowId: string | null
  readonly outputType: string | null
  readonly sortBy: 'created_at' | 'execution_duration'
  readonly order: 'asc' | 'desc'
  readonly limit: number
  readonly offset: number
}

interface SelectAnswer {
  readonly records: readonly StoredRecord[]
  readonly total: number
}

// As many as ComfyUI's own history holds: beyond that a list is no longer looked through.
const LISTED_MAX = 10_000

const IS_3D = `lower(name) GLOB '*.obj' OR lower(name) GLOB '*.fbx' OR lower(name) GLOB '*.gl[bt]*' OR lower(name) GLOB '*.usdz'`
const HAS_OUTPUT = `EXISTS (SELECT 1 FROM job_output WHERE job_output.seq = job.seq AND
  CASE ?5 WHEN '3d' THEN (${IS_3D}) ELSE type = ?5 END)`

export function prepareSelectJobs(database: DatabaseSync, deps: RecordDeps): (input: SelectInput) => SelectAnswer {
  const LISTED = `SELECT seq FROM job LEFT JOIN job_submission USING (seq)
    WHERE account_id = ?1 AND status IN (SELECT value FROM json_each(?2)) AND ${IS_RETAINED}
      AND (?4 IS NULL OR workflow_id = ?4) AND (?5 IS NULL OR ${HAS_OUTPUT}) AND NOT ${IS_HIDDEN}
    ORDER BY created_at DESC LIMIT ${LISTED_MAX}`
  const count = prepareRows<[number]>(database, `SELECT count(*) FROM (${LISTED})`)
  const select = (key: string, order: string) =>
    prepareRows<JobRow>(
      database,
      `SELECT ${JOB_COLUMNS} FROM job WHERE seq IN (${LISTED}) ORDER BY ${key} ${order}, seq ${order} LIMIT ?6 OFFSET ?7`,
    )
  const DURATION = 'coalesce(completed_at - started_at, 0)'
  const selects = {
    created_at: { asc: select('created_at', 'ASC'), desc: select('created_at', 'DESC') },
    execution_duration: { asc: select(DURATION, 'ASC'), desc: select(DURATION, 'DESC') },
  }
  const complete = prepareComplete(database, deps)
  return ({ accountId, now, statuses, workflowId, outputType, sortBy, order, limit, offset }) => {
    const filter = [accountId, JSON.stringify(statuses), now, workflowId, outputType] as const
    const rows = selects[sortBy][order].all(...filter, limit, offset)
    const total = count.get(...filter)?.[0] ?? 0
    return { records: complete(rows, { budget: HISTORY_BUDGET, keepsBare: true }), total }
  }
}
