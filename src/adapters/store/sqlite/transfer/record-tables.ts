/** How SQLite keeps each kind of record: where its columns come from, and how its rows are written. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { OWN_META, type RecordKind, type RecordRow } from '../../../../domain/transfer/record-kinds.ts'

interface RecordQuery {
  /** With the columns of the kind, under their names. */
  readonly select: string
}

const LIVE = `job.status IN ('queued', 'running', 'canceling')`
const ownMeta = OWN_META.map((key) => `'${key}'`).join(', ')

/** What is kept otherwise than in a table with the kind's name and columns. */
const QUERIES: Readonly<Record<string, RecordQuery | undefined>> = {
  meta: { select: `SELECT key, value FROM meta WHERE key NOT IN (${ownMeta})` },
  asset: {
    select: `SELECT id, seq, account_id, hash, size_bytes, content_type, file_path, subfolder, tags, created_at, expires_at, note
      FROM asset WHERE job_id IS NULL`,
  },
  output: {
    select: `SELECT asset.id, asset.seq, asset.account_id, asset.job_id, listed.position, listed.node_id,
        listed.name, listed.type, asset.content_type, asset.size_bytes, asset.hash, asset.file_path, asset.subfolder,
        asset.created_at, asset.expires_at, asset.note
      FROM asset LEFT JOIN job ON job.id = asset.job_id
      LEFT JOIN job_output AS listed ON listed.seq = job.seq AND listed.asset_id = asset.id
      WHERE asset.job_id IS NOT NULL`,
  },
  job: {
    select: `SELECT job.id, job.seq, account_id, pool, status, priority, attempt, version, created_at, started_at,
        completed_at, expires_at, iif(${LIVE}, needs_extra_data, 0) AS needs_extra_data,
        iif(${LIVE}, input_count, 0) AS input_count, output_count, outputs_reused, outputs_replaced,
        iif(${LIVE}, needs, '') AS needs, engine_id, iif(${LIVE}, engine_losses, 0) AS engine_losses,
        iif(${LIVE}, price_second, NULL) AS price_second, iif(${LIVE}, price_minimum, NULL) AS price_minimum,
        metadata, progress, error, recipe, code, attempts, title, output_types, iif(${LIVE}, hook, NULL) AS hook,
        job_workflow.text AS workflow, job_workflow.origin, job_submission.workflow_id,
        job_submission.text AS submission, iif(${LIVE}, NULL, job_run.text) AS run, job_hidden.seq IS NOT NULL AS is_hidden,
        job_log.text AS log_text, job_log.truncated AS log_truncated, job_log.captured_at AS log_captured_at,
        job_log.complete AS log_complete, job_log.marks AS log_marks, job_secret.sealed, job_notes.text AS notes,
        reused_from, not_before, queue_until
      FROM job JOIN job_workflow USING (seq) LEFT JOIN job_submission USING (seq) LEFT JOIN job_run USING (seq)
      LEFT JOIN job_hidden USING (seq) LEFT JOIN job_log USING (seq) LEFT JOIN job_secret USING (seq)
      LEFT JOIN job_notes USING (seq)`,
  },
  job_input: {
    select: `SELECT job.id AS job_id, position, name, hash, size_bytes, content_type
      FROM job_input JOIN job USING (seq)`,
  },
  job_label: {
    select: `SELECT job_label.account_id, key, value, job_label.created_at, job_id, job.expires_at
      FROM job_label JOIN job ON job.id = job_label.job_id`,
  },
  // What was sent is told by a journal beside the database, which does not move. To take a call for sent that was not costs one
  // answer; the other way round it would be made, and paid, twice.
  router_call: {
    select: `SELECT seq, id, account_id, key, fingerprint, queued, state, model, base_url, created_at, expires_at, started_at,
        attempt, hold_micros, spend_micros, costly, progress, fence, iif(state = 'running', 1, sent) AS sent, stop_asked, losses, task, job_id,
        hook, trace, plan, attempt_index
      FROM router_call`,
  },
  account_storage: { select: 'SELECT account_id, bytes FROM account_storage WHERE bytes <> 0' },
}

/** Rows behind a key, if one is given, in the order of their keys. The last parameter is the limit. */
export function toSelect(kind: RecordKind, hasKey: boolean): string {
  const { name, columns, keyLength } = kind
  const inner = QUERIES[name]?.select ?? `SELECT ${columns.join(', ')} FROM ${name}`
  const key = columns.slice(0, keyLength).join(', ')
  const behind = hasKey ? `WHERE (${key}) > (${columns.slice(0, keyLength).fill('?').join(', ')})` : ''
  return `SELECT ${columns.join(', ')} FROM (${inner}) ${behind} ORDER BY ${key} LIMIT ?`
}

type WriteRow = (row: RecordRow) => void

/** Writes one row of the kind, whole or not at all: the caller has a transaction open. */
export function prepareWrite(database: DatabaseSync, kind: RecordKind): WriteRow {
  const special = WRITERS[kind.name]
  if (special !== undefined) return special(database, kind)
  return prepareInsert(database, kind.name, kind.columns)
}

function prepareInsert(database: DatabaseSync, table: string, columns: readonly string[]): WriteRow {
  const places = columns.map(() => '?').join(', ')
  const insert = database.prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`)
  return (row) => void insert.run(...(row as SQLInputValue[]))
}

const JOB_PARTS = {
  job_workflow: { text: 'workflow', origin: 'origin' },
  job_submission: { workflow_id: 'workflow_id', text: 'submission' },
  job_run: { text: 'run' },
  job_log: {
    text: 'log_text',
    truncated: 'log_truncated',
    captured_at: 'log_captured_at',
    complete: 'log_complete',
    marks: 'log_marks',
  },
  job_secret: { sealed: 'sealed' },
  job_notes: { text: 'notes' },
} as const
const OWN_JOB_COLUMNS = 34

const WRITERS: Readonly<Record<string, ((database: DatabaseSync, kind: RecordKind) => WriteRow) | undefined>> = {
  job(database, { columns }) {
    const at = (name: string) => columns.indexOf(name)
    const insertJob = prepareInsert(database, 'job', columns.slice(0, OWN_JOB_COLUMNS))
    const hide = database.prepare('INSERT INTO job_hidden (seq) VALUES (?)')
    const parts = Object.entries(JOB_PARTS).map(([table, fields]) => {
      const sources = Object.values(fields).map(at)
      // The last of a part's columns that may not be null tells whether there is such a part.
      const told = table === 'job_submission' ? at('submission') : (sources[0] ?? -1)
      return { told, sources, insert: prepareInsert(database, table, ['seq', ...Object.keys(fields)]) }
    })
    return (row) => {
      insertJob(row.slice(0, OWN_JOB_COLUMNS))
      const seq = row[at('seq')] ?? null
      for (const { told, sources, insert } of parts) {
        if (row[told] !== null) insert([seq, ...sources.map((source) => row[source] ?? null)])
      }
      if (row[at('is_hidden')] === 1) hide.run(seq as SQLInputValue)
    }
  },
  job_input(database) {
    const insert = database.prepare(`
      INSERT INTO job_input (seq, position, name, hash, size_bytes, content_type)
      SELECT seq, ?2, ?3, ?4, ?5, ?6 FROM job WHERE id = ?1`)
    return (row) => void insert.run(...(row as SQLInputValue[]))
  },
  job_label(database, { columns }) {
    const insert = prepareInsert(database, 'job_label', columns.slice(0, -1))
    return (row) => insert(row.slice(0, -1))
  },
  output(database, { columns }) {
    const at = (name: string) => columns.indexOf(name)
    const insertAsset = database.prepare(`
      INSERT INTO asset
        (id, seq, account_id, job_id, content_type, size_bytes, hash, file_path, subfolder, created_at, expires_at, note, tags)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '[]')`)
    const insertOutput = database.prepare(`
      INSERT INTO job_output (seq, position, asset_id, node_id, name, type, content_type, size_bytes, hash)
      SELECT seq, ?3, ?2, ?4, ?5, ?6, ?7, ?8, ?9 FROM job WHERE id = ?1`)
    return (row) => {
      const values = row as SQLInputValue[]
      insertAsset.run(...values.slice(0, at('position')), ...values.slice(at('content_type')))
      if (row[at('position')] === null) return
      const [id, jobId] = [values[at('id')], values[at('job_id')]]
      insertOutput.run(jobId ?? null, id ?? null, ...values.slice(at('position'), at('file_path')))
    }
  },
}
