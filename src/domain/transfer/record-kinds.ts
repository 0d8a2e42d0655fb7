/**
 * Everything that a store keeps, as rows that any store can read and write: what a move between stores carries. Columns have the
 * same meaning everywhere; how a store lays them out is its own business. What follows from other rows (counters, indexes, sums)
 * is not carried: the store that receives the rows makes it anew. What only describes running processes is not carried either.
 */
export type RecordValue = string | number | Uint8Array | null

/** The values of a record, in the order of its kind's columns. */
export type RecordRow = readonly RecordValue[]

export interface RecordKind {
  readonly name: RecordName
  /** The first of them are the key. */
  readonly columns: readonly string[]
  readonly keyLength: number
  /** Recomputed by the receiving store; compared, not written. */
  readonly isDerived?: boolean
}

export type RecordName = (typeof KINDS)[number]['name']

const KINDS = [
  { name: 'meta', keyLength: 1, columns: ['key', 'value'] },
  { name: 'account', keyLength: 1, columns: ['id', 'max_running', 'max_queued', 'served'] },
  {
    name: 'account_profile',
    keyLength: 1,
    columns: ['account_id', 'name', 'tier', 'overrides', 'status', 'created_at', 'version'],
  },
  {
    name: 'api_key',
    keyLength: 1,
    columns: [
      ...['id', 'account_id', 'name', 'scopes', 'created_at', 'expires_at', 'revoked_at', 'last_used_at', 'digest'],
      ...['previous_digest', 'previous_until', 'version'],
    ],
  },
  {
    name: 'deployment',
    keyLength: 1,
    columns: ['id', 'account_id', 'state', 'workers', 'idle_after', 'created_at', 'changed_at', 'version'],
  },
  { name: 'credit_account', keyLength: 1, columns: ['account_id', 'available', 'held', 'floor', 'low_mark'] },
  {
    name: 'ledger_entry',
    keyLength: 1,
    columns: [
      ...['seq', 'account_id', 'kind', 'reference', 'granted', 'available', 'held', 'charged', 'at', 'memo'],
      ...['pool', 'model', 'key_id'],
    ],
  },
  {
    name: 'ledger_hold',
    keyLength: 1,
    columns: ['id', 'account_id', 'micros', 'held_at', 'pool', 'model', 'key_id'],
  },
  { name: 'audit_log', keyLength: 1, columns: ['seq', 'actor', 'action', 'subject', 'at', 'details', 'outcome'] },
  { name: 'rate_limit', keyLength: 1, columns: ['account_id', 'booked_until'] },
  { name: 'prompt_number', keyLength: 1, columns: ['account_id', 'next'] },
  { name: 'output_number', keyLength: 3, columns: ['account_id', 'folder', 'prefix', 'last'] },
  { name: 'history_clear', keyLength: 1, columns: ['account_id', 'at'] },
  {
    name: 'user_file',
    keyLength: 1,
    columns: ['id', 'account_id', 'path', 'size_bytes', 'created_at', 'modified_at', 'bytes'],
  },
  {
    name: 'idempotency_key',
    keyLength: 2,
    columns: ['account_id', 'key', 'expires_at', 'job_id', 'asset_id', 'batch_id'],
  },
  {
    name: 'job_batch',
    keyLength: 1,
    columns: [
      ...['id', 'account_id', 'pool', 'created_at', 'expires_at', 'is_whole', 'digest', 'jobs', 'refused'],
      'limited_by',
    ],
  },
  { name: 'job_result', keyLength: 2, columns: ['account_id', 'key', 'job_id', 'run_ms', 'expires_at'] },
  { name: 'job_recipe', keyLength: 2, columns: ['account_id', 'recipe', 'title', 'terms', 'expires_at'] },
  { name: 'blob_candidate', keyLength: 1, columns: ['hash', 'size_bytes', 'since'] },
  { name: 'engine_catalog', keyLength: 1, columns: ['hash', 'text'] },
  {
    name: 'engine',
    keyLength: 1,
    columns: [
      ...['id', 'node_id', 'held_until', 'is_shared', 'catalog_hash', 'state', 'concurrency', 'about', 'seen_at'],
      ...['will', 'will_number'],
    ],
  },
  {
    name: 'asset',
    keyLength: 1,
    columns: [
      ...['id', 'seq', 'account_id', 'hash', 'size_bytes', 'content_type', 'file_path', 'subfolder', 'tags'],
      ...['created_at', 'expires_at'],
    ],
  },
  {
    name: 'job',
    keyLength: 1,
    columns: [
      ...['id', 'seq', 'account_id', 'pool', 'status', 'priority', 'attempt', 'version', 'created_at', 'started_at'],
      ...['completed_at', 'expires_at', 'needs_extra_data', 'input_count', 'output_count', 'outputs_reused'],
      ...['outputs_replaced', 'needs', 'engine_id', 'engine_losses', 'price_second', 'price_minimum', 'metadata'],
      ...[
        'progress',
        'error',
        'recipe',
        'code',
        'attempts',
        'title',
        'output_types',
        'hook',
        'reused_from',
        'workflow',
        'origin',
        'workflow_id',
        'submission',
        'run',
        'is_hidden',
        'log_text',
        'log_truncated',
      ],
      ...['log_captured_at', 'log_complete', 'log_marks', 'sealed', 'notes'],
    ],
  },
  { name: 'job_input', keyLength: 2, columns: ['job_id', 'position', 'name', 'hash', 'size_bytes', 'content_type'] },
  {
    name: 'job_label',
    keyLength: 5,
    columns: ['account_id', 'key', 'value', 'created_at', 'job_id', 'expires_at'],
  },
  {
    name: 'output',
    keyLength: 1,
    columns: [
      // The place in the job's list and what is told there are null for a file that is not listed.
      ...['id', 'seq', 'account_id', 'job_id', 'position', 'node_id', 'name', 'type', 'content_type', 'size_bytes'],
      ...['hash', 'file_path', 'subfolder', 'created_at', 'expires_at'],
    ],
  },
  {
    name: 'router_call',
    keyLength: 1,
    columns: [
      ...['seq', 'id', 'account_id', 'key', 'fingerprint', 'queued', 'state', 'model', 'base_url', 'created_at'],
      ...['expires_at', 'started_at', 'attempt', 'hold_micros', 'spend_micros', 'costly', 'progress'],
      ...['fence', 'sent', 'stop_asked', 'losses', 'task', 'job_id', 'hook', 'trace'],
    ],
  },
  { name: 'router_input', keyLength: 1, columns: ['seq', 'body', 'hash', 'size_bytes'] },
  {
    name: 'router_result',
    keyLength: 1,
    columns: [
      ...['seq', 'account_id', 'content_type', 'body', 'hash', 'size_bytes', 'cost_micros', 'refusal', 'finished_at'],
      'replay_until',
    ],
  },
  { name: 'router_account', keyLength: 1, columns: ['account_id', 'running', 'costly', 'committed_micros'] },
  // Behind all that is told to them: a store that receives a job tells nobody of it, because nobody is there yet.
  {
    name: 'webhook_endpoint',
    keyLength: 1,
    columns: [
      ...['id', 'account_id', 'kind', 'url', 'description', 'events', 'secret', 'previous_secret', 'previous_until'],
      ...['state', 'reason', 'disabled_at', 'failing_since', 'low_mark', 'created_at', 'changed_at', 'used_at'],
    ],
  },
  {
    name: 'webhook_delivery',
    keyLength: 1,
    columns: [
      ...['seq', 'id', 'endpoint_id', 'account_id', 'type', 'subject', 'at', 'facts', 'state', 'attempts', 'first_at'],
      ...['next_at', 'ended_at'],
    ],
  },
  {
    name: 'webhook_attempt',
    keyLength: 2,
    columns: ['delivery_id', 'number', 'at', 'took_ms', 'outcome', 'status', 'response'],
  },
  {
    name: 'resumable_upload',
    keyLength: 1,
    columns: [
      ...['id', 'account_id', 'length_bytes', 'fields', 'metadata', 'place', 'hash', 'asset_id', 'created_at'],
      'expires_at',
    ],
  },
  { name: 'account_storage', keyLength: 1, columns: ['account_id', 'bytes'], isDerived: true },
] as const satisfies readonly {
  readonly name: string
  readonly columns: readonly string[]
  readonly keyLength: number
  readonly isDerived?: boolean
}[]

/** In the order in which they are written: whatever a row refers to comes before it. */
export const RECORD_KINDS: readonly RecordKind[] = KINDS

/** Values of the service that belong to one store, or to the move itself. */
export const OWN_META = ['contracted_to', 'signing_keys', 'move_id', 'move_progress', 'moved_to'] as const
export type OwnMeta = (typeof OWN_META)[number]

export function keyOf({ keyLength }: RecordKind, row: RecordRow): RecordRow {
  return row.slice(0, keyLength)
}
