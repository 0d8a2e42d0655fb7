/** How Postgres keeps each kind of record: where its columns come from, and which rows of which tables a record becomes. */
import {
  OWN_META,
  type RecordKind,
  type RecordRow,
  type RecordValue,
} from '../../../../domain/transfer/record-kinds.ts'

const ownMeta = OWN_META.map((key) => `'${key}'`).join(', ')

/** With the columns of the kind, under their names. `behind` narrows each table, so that an index serves every batch. */
type Select = (behind: (key: string) => string) => string

const JOB_COLUMNS = `id, seq, account_id, pool, status, priority, attempt, version, created_at, started_at, not_before, queue_until`

const SELECTS: Readonly<Record<string, Select | undefined>> = {
  meta: () => `SELECT key, value FROM meta WHERE key NOT IN (${ownMeta})`,
  account: () =>
    'SELECT id, max_running, max_queued, served, share_percent FROM account JOIN account_load ON account_id = id',
  // One snapshot of both tables: a job is in one of them.
  job: (behind) => `
    SELECT either.id, seq, account_id, pool, status, priority, attempt, version, created_at, started_at, completed_at,
      either.expires_at, needs_extra_data, input_count, output_count, outputs_reused, outputs_replaced, needs, engine_id,
      engine_losses, price_second, price_minimum, metadata, progress, error, recipe, code, attempts, title, output_types, hook, workflow,
      origin, workflow_id, submission, run, is_hidden,
      job_log.text AS log_text, truncated AS log_truncated, captured_at AS log_captured_at, complete AS log_complete, marks AS log_marks, sealed,
      job_notes.text AS notes, reused_from, not_before, queue_until
    FROM (
      (SELECT ${JOB_COLUMNS}, NULL::bigint AS completed_at, expires_at, needs_extra_data, input_count, output_count,
         outputs_reused, outputs_replaced, needs, engine_id, engine_losses, price_second, price_minimum, metadata, progress,
         NULL::text AS error, recipe, NULL::text AS code, attempts, title, 0 AS output_types, hook, NULL::text AS run, false AS is_hidden,
         NULL::uuid AS reused_from
       FROM job ${behind('id')})
      UNION ALL
      (SELECT ${JOB_COLUMNS}, completed_at, expires_at, 0, 0, output_count, outputs_reused, outputs_replaced, '', engine_id, 0,
         NULL, NULL, metadata, progress, error, recipe, code, attempts, title, coalesce(output_types, 0), NULL, run, is_hidden, reused_from
       FROM job_done ${behind('id')})) AS either
    JOIN job_text ON job_text.job_id = either.id AND job_text.expires_at = either.expires_at
    LEFT JOIN job_log ON job_log.job_id = either.id AND job_log.expires_at = either.expires_at
    LEFT JOIN job_secret ON job_secret.job_id = either.id LEFT JOIN job_notes ON job_notes.job_id = either.id`,
  output: () => `
    SELECT id, seq, account_id, job_id, position, CASE WHEN position IS NOT NULL THEN node_id END AS node_id,
      CASE WHEN position IS NOT NULL THEN name END AS name, CASE WHEN position IS NOT NULL THEN type END AS type,
      content_type, size_bytes, hash, file_path, subfolder, created_at, expires_at, note
    FROM output`,
  account_storage: () => 'SELECT account_id, bytes FROM account_storage WHERE bytes <> 0',
}

/** Rows behind a key, if one is given, in the order of their keys. The last parameter is the limit. */
export function toSelect({ name, columns, keyLength }: RecordKind, hasKey: boolean): string {
  const keys = columns.slice(0, keyLength)
  const places = keys.map((_, index) => `$${index + 1}`).join(', ')
  const limit = `LIMIT $${hasKey ? keyLength + 1 : 1}`
  const behind = (key: string) => `${hasKey ? `WHERE ${key} > $1` : ''} ORDER BY ${key} ${limit}`
  const inner = SELECTS[name]?.(behind) ?? `SELECT ${columns.join(', ')} FROM ${name}`
  const narrowed = hasKey ? `WHERE (${keys.join(', ')}) > (${places})` : ''
  return `SELECT ${columns.join(', ')} FROM (${inner}) AS record ${narrowed} ORDER BY ${keys.join(', ')} ${limit}`
}

interface TableRows {
  readonly table: string
  readonly columns: readonly string[]
  readonly rows: readonly RecordRow[]
}

/** The rows that records of a kind become, by table. */
export function toTableRows(kind: RecordKind, rows: readonly RecordRow[]): readonly TableRows[] {
  const pick = pickerOf(kind)
  switch (kind.name) {
    case 'account':
      return [
        pick('account', { id: 'id', max_queued: 'max_queued' }, rows),
        pick(
          'account_load',
          { account_id: 'id', max_running: 'max_running', served: 'served', share_percent: 'share_percent' },
          rows,
        ),
      ]
    case 'job':
      return toJobTables(kind, rows)
    case 'output':
      return [{ table: 'output', columns: kind.columns, rows: rows.map((row) => toOutputRow(kind, row)) }]
    default:
      return [{ table: kind.name, columns: kind.columns, rows }]
  }
}

function toJobTables(kind: RecordKind, rows: readonly RecordRow[]): readonly TableRows[] {
  const pick = pickerOf(kind)
  const at = (name: string) => kind.columns.indexOf(name)
  const has = (name: string) => rows.filter((row) => row[at(name)] !== null)
  const isLive = (row: RecordRow) => row[at('completed_at')] === null
  const same = (...names: string[]) => Object.fromEntries(names.map((name) => [name, name]))
  const shared = same(
    ...['id', 'seq', 'account_id', 'pool', 'status', 'priority', 'attempt', 'version', 'created_at', 'started_at'],
    ...['expires_at', 'output_count', 'outputs_reused', 'outputs_replaced', 'engine_id', 'metadata', 'progress'],
    ...['recipe', 'attempts', 'title', 'not_before', 'queue_until'],
  )
  const live = same(
    ...['needs_extra_data', 'input_count', 'needs', 'engine_losses', 'price_second', 'price_minimum', 'hook'],
  )
  const keyed = { job_id: 'id', expires_at: 'expires_at' }
  return [
    pick('job', { ...shared, ...live }, rows.filter(isLive)),
    pick(
      'job_done',
      { ...shared, ...same('completed_at', 'error', 'code', 'output_types', 'run', 'is_hidden', 'reused_from') },
      rows.filter((row) => !isLive(row)),
    ),
    pick('job_text', { ...keyed, ...same('workflow', 'origin', 'workflow_id', 'submission') }, rows),
    pick(
      'job_log',
      {
        ...keyed,
        text: 'log_text',
        truncated: 'log_truncated',
        captured_at: 'log_captured_at',
        complete: 'log_complete',
        marks: 'log_marks',
      },
      has('log_text'),
    ),
    pick('job_secret', { job_id: 'id', sealed: 'sealed' }, has('sealed')),
    pick('job_notes', { job_id: 'id', text: 'notes' }, has('notes')),
  ]
}

/** What is told of a listed file only is empty for the others. */
function toOutputRow({ columns }: RecordKind, row: RecordRow): RecordRow {
  const told = ['node_id', 'name', 'type'].map((name) => columns.indexOf(name))
  return row.map((value, index) => (value === null && told.includes(index) ? '' : value))
}

function pickerOf({ columns }: RecordKind) {
  return (table: string, fields: Readonly<Record<string, string>>, rows: readonly RecordRow[]): TableRows => {
    const sources = Object.values(fields).map((name) => columns.indexOf(name))
    return {
      table,
      columns: Object.keys(fields),
      rows: rows.map((row) => sources.map((source): RecordValue => row[source] ?? null)),
    }
  }
}
