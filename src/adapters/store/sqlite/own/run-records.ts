/**
 * Jobs with how they were submitted and what their runs showed, for one account: one of them, the queue as it stands, the
 * history in the order in which runs ended, and a filtered list. Long texts are read only as far as a budget goes, so that
 * one caller's history never keeps the reader from everybody else.
 */
import { type JobRow, toJob } from '../../rows/jobs/job.ts'
import type { StoredRecord } from '../../rows/jobs/recorded-job.ts'
import { all, defineStore, get, read, type Steps } from '../../statements/operation.ts'
import { query, sqliteOnly } from '../../statements/statement.ts'
import { addPositions, findVisible, IS_RETAINED, listOutputs } from '../../stores/jobs/find-job.ts'
import type { RecordFilter, RecordReads } from '../../stores/run-record-store.ts'
import { jobRow } from '../../tables/jobs.ts'
import { flag, integer, nullable, type RowOf, shape, text } from '../../tables/table.ts'

// About what the row of an output takes.
const OUTPUT_LENGTH = 300
const BUDGET = 16 * 1024 * 1024

const IS_CLEARED = `coalesce(completed_at <= (SELECT at FROM history_clear WHERE account_id = job.account_id), 0)`
const IS_HIDDEN = `(EXISTS (SELECT 1 FROM job_hidden WHERE job_hidden.seq = job.seq) OR ${IS_CLEARED})`

const parts = shape({
  workflow: text(),
  workflowId: nullable(text()),
  submission: nullable(text()),
  run: nullable(text()),
  isHidden: flag(),
})
type Parts = RowOf<typeof parts>
const PARTS = query(
  'records.parts',
  parts,
  sqliteOnly(`SELECT w.text AS workflow, s.workflow_id, s.text AS submission, r.text AS run, ${IS_HIDDEN} AS is_hidden FROM job
    JOIN job_workflow w USING (seq) LEFT JOIN job_submission s USING (seq) LEFT JOIN job_run r USING (seq) WHERE seq = :seq`),
)
// A job without its texts; the reader of a long queue still learns that it is there.
const NO_TEXTS: Parts = { workflow: '{}', workflowId: null, submission: null, run: null, isHidden: false }

function toRecord(job: StoredRecord['job'], { workflowId, submission: text, ...rest }: Parts): StoredRecord {
  return { job, ...rest, submission: text === null ? null : { workflowId, text } }
}

/** Adds the texts to rows until the budget is spent; further rows then come without texts (`keepsBare`), or not at all. */
function* complete(rows: readonly JobRow[], { keepsBare }: { readonly keepsBare: boolean }): Steps<StoredRecord[]> {
  const whole: { readonly row: JobRow; readonly parts: Parts; readonly outputs: StoredRecord['job']['outputs'] }[] = []
  let left = BUDGET
  for (const row of rows) {
    if (left <= 0) break
    const parts = (yield* get(PARTS, { seq: row.seq })) ?? NO_TEXTS
    const outputs = yield* listOutputs(row)
    const { workflow, submission, run } = parts
    left -= workflow.length + (submission?.length ?? 0) + (run?.length ?? 0) + OUTPUT_LENGTH * outputs.length
    whole.push({ row, parts, outputs })
  }
  const jobs = yield* addPositions(whole.map(({ row, outputs }) => ({ ...row, outputs })))
  const records = jobs.map((job, index) => toRecord(job, whole[index]?.parts ?? NO_TEXTS))
  if (!keepsBare) return records
  return [...records, ...rows.slice(whole.length).map((row) => toRecord(toJob(row, [], null), NO_TEXTS))]
}

const HELD = query(
  'records.held',
  jobRow,
  sqliteOnly(`SELECT ${jobRow.columns} FROM job INDEXED BY job_listing
    WHERE account_id = :accountId AND status IN ('running', 'canceling') ORDER BY started_at, seq LIMIT :limit`),
)
const QUEUED = query(
  'records.queued',
  jobRow,
  sqliteOnly(`SELECT ${jobRow.columns} FROM job INDEXED BY job_queue
    WHERE account_id = :accountId AND status = 'queued' ORDER BY priority DESC, seq LIMIT :limit`),
)

const history = (order: 'ASC' | 'DESC') =>
  query(
    `records.history.${order}`,
    jobRow,
    sqliteOnly(`SELECT ${jobRow.columns} FROM job INDEXED BY job_ended
      WHERE account_id = :accountId AND status IN ('succeeded', 'failed', 'canceled') AND started_at IS NOT NULL
        AND expires_at > :now AND NOT ${IS_HIDDEN}
      ORDER BY completed_at ${order}, seq ${order} LIMIT :maxItems OFFSET :offset`),
  )
const OLDEST_FIRST = history('ASC')
const NEWEST_FIRST = history('DESC')

// As many as ComfyUI's own history holds: beyond that a list is no longer looked through.
const LISTED_MAX = 10_000

const IS_3D = `lower(name) GLOB '*.obj' OR lower(name) GLOB '*.fbx' OR lower(name) GLOB '*.gl[bt]*' OR lower(name) GLOB '*.usdz'`
const HAS_OUTPUT = `EXISTS (SELECT 1 FROM job_output WHERE job_output.seq = job.seq AND
  CASE :outputType WHEN '3d' THEN (${IS_3D}) ELSE type = :outputType END)`
const LISTED = `SELECT seq FROM job LEFT JOIN job_submission USING (seq)
  WHERE account_id = :accountId AND status IN (SELECT value FROM json_each(:statuses)) AND ${IS_RETAINED}
    AND (:workflowId IS NULL OR workflow_id = :workflowId) AND (:outputType IS NULL OR ${HAS_OUTPUT}) AND NOT ${IS_HIDDEN}
  ORDER BY created_at DESC LIMIT ${LISTED_MAX}`

const COUNT = query(
  'records.count',
  shape({ total: integer() }),
  sqliteOnly(`SELECT count(*) AS total FROM (${LISTED})`),
)
const SORTED_BY = { created_at: 'created_at', execution_duration: 'coalesce(completed_at - started_at, 0)' }
const select = (sortBy: RecordFilter['sortBy'], order: RecordFilter['order']) =>
  query(
    `records.select.${sortBy}.${order}`,
    jobRow,
    sqliteOnly(`SELECT ${jobRow.columns} FROM job WHERE seq IN (${LISTED})
      ORDER BY ${SORTED_BY[sortBy]} ${order}, seq ${order} LIMIT :limit OFFSET :offset`),
  )
const ordered = (sortBy: RecordFilter['sortBy']) => ({ asc: select(sortBy, 'asc'), desc: select(sortBy, 'desc') })
const SELECTS = { created_at: ordered('created_at'), execution_duration: ordered('execution_duration') }

export const recordReads = defineStore<RecordReads>('records', {
  find: read(function* (accountId, jobId, now) {
    const row = yield* findVisible(accountId, jobId, now)
    const [record = null] = row === null ? [] : yield* complete([row], { keepsBare: true })
    return record
  }),
  listLive: read(function* (accountId, limit) {
    const held = yield* all(HELD, { accountId, limit })
    return yield* complete([...held, ...(yield* all(QUEUED, { accountId, limit }))], { keepsBare: true })
  }),
  // In the order of their ends. When not everything fits, the newest of the range are the ones that do.
  listHistory: read(function* (accountId, { maxItems, offset }, now) {
    const range = { accountId, now, maxItems }
    if (offset !== null) return yield* complete(yield* all(OLDEST_FIRST, { ...range, offset }), { keepsBare: false })
    return (yield* complete(yield* all(NEWEST_FIRST, { ...range, offset: 0 }), { keepsBare: false })).reverse()
  }),
  select: read(function* (accountId, { sortBy, order, limit, offset, ...filter }, now) {
    const rows = yield* all(SELECTS[sortBy][order], { ...filter, accountId, now, limit, offset })
    const total = (yield* get(COUNT, { ...filter, accountId, now }))?.total ?? 0
    return { records: yield* complete(rows, { keepsBare: true }), total }
  }),
})
