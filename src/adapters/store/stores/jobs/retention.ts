/**
 * The end of retention: live jobs become `expired`, ended ones go with everything that belongs to them. On Postgres a service removes
 * ended jobs by whole ranges (postgres/operations/jobs/drop-expired.ts), and single ones only here.
 */
import type { Lease, TouchedJob } from '../../../../domain/jobs/job-store.ts'
import { unseenUse } from '../../../../domain/jobs/run/gpu-use.ts'
import { all, get, run, type Steps, together } from '../../statements/operation.ts'
import { both, command, postgresOnly, query, sqliteOnly, toRows } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { integer, nullable, pick, type RowOf, shape, text } from '../../tables/table.ts'
import { removeRecords } from '../account-storage.ts'
import { offerBlobs } from '../blob-references.ts'
import { endJobs } from './end-jobs.ts'
import { withdrawTickets } from './run-bounds.ts'

const due = shape({
  ...pick(jobRow, 'id', 'status', 'startedAt').fields,
  foreseenMs: nullable(integer()),
  engineId: nullable(text()),
})
const LOCK_DUE = query(
  'jobs.lockDue',
  due,
  both({
    sqlite: `SELECT ${due.columns} FROM job WHERE status IN ('queued', 'running', 'canceling') AND expires_at <= :now
      ORDER BY expires_at LIMIT :limit`,
    postgres: `SELECT ${due.columns} FROM job WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
      FOR NO KEY UPDATE SKIP LOCKED`,
  }),
)

const LOCK_LATE = query(
  'jobs.lockLate',
  due,
  ({ either }) => `SELECT ${due.columns} FROM job WHERE status = 'queued' AND queue_until <= :now AND expires_at > :now
    ORDER BY queue_until LIMIT :limit ${either('', 'FOR NO KEY UPDATE SKIP LOCKED')}`,
)

export function* expireJobs(now: Date, limit: number): Steps<TouchedJob[]> {
  const over = yield* all(LOCK_DUE, { now, limit })
  const late = over.length < limit ? yield* all(LOCK_LATE, { now, limit: limit - over.length }) : []
  const found = [...over, ...late]
  const ended = yield* endJobs(
    found.map(({ id, status: from, ...run }) => ({
      ...{ id, from, to: 'expired' as const, at: now, error: null },
      gpu: from === 'queued' ? null : unseenUse(run, now),
    })),
  )
  return ended.map(({ id, accountId, version }) => ({ jobId: id, accountId, version, status: 'expired' }))
}

const id = pick(jobRow, 'id')
const FIND_OLD = query(
  'jobs.findOld',
  id,
  both({
    sqlite: `
      SELECT id FROM (
        SELECT id FROM job WHERE status IN ('succeeded', 'failed', 'canceled') AND expires_at <= :now ORDER BY expires_at LIMIT :limit)
      UNION ALL SELECT id FROM (
        SELECT id FROM job WHERE status = 'expired' AND max(completed_at, expires_at) <= :expiredBefore
        ORDER BY max(completed_at, expires_at) LIMIT :limit)
      LIMIT :limit`,
    postgres: `
      (SELECT id FROM job_done WHERE expires_at <= :now AND status <> 'expired' LIMIT :limit)
      UNION ALL (SELECT id FROM job_done WHERE status = 'expired' AND greatest(completed_at, expires_at) <= :expiredBefore LIMIT :limit) LIMIT :limit`,
  }),
)

interface Removal {
  readonly now: Date
  readonly expiredBefore: Date
}

/** How many were removed. */
export function* removeJobs({ now, expiredBefore }: Removal, limit: number): Steps<number> {
  const ids = (yield* all(FIND_OLD, { now, expiredBefore, limit })).map(({ id }) => id)
  return yield* removeEnded(ids, now)
}

const removed = shape({
  ...pick(jobRow, 'seq', 'id', 'accountId', 'status', 'createdAt', 'expiresAt').fields,
  metadata: nullable(text()),
})
const DELETE_JOBS = query('jobs.deleteEnded', removed, (words) =>
  words.either(
    `DELETE FROM job WHERE ${words.isIn('id', ':ids')} RETURNING ${removed.columns}`,
    `DELETE FROM job_done WHERE id = ANY(:ids::uuid[]) RETURNING ${removed.columns}`,
  ),
)
const ofSeqs = (table: string) => `DELETE FROM ${table} WHERE seq IN (SELECT value FROM json_each(:seqs))`
const ofIds = (table: string) => `DELETE FROM ${table} WHERE job_id = ANY(:ids::uuid[])`
// Unlisted files of a job are records with its deadline: they go like every other record past its life.
const DELETE_PARTS = [
  ...['job_workflow', 'job_log', 'job_submission', 'job_run', 'job_hidden'].map((table) =>
    command(`jobs.delete.${table}`, sqliteOnly(ofSeqs(table))),
  ),
  ...['job_text', 'job_log'].map((table) => command(`jobs.deleteBeside.${table}`, postgresOnly(ofIds(table)))),
  command('jobs.deleteChosen', postgresOnly('DELETE FROM job_id_chosen WHERE id = ANY(:ids::uuid[])')),
]

const LABEL = {
  account_id: 'text',
  key: 'text',
  value: 'text',
  created_at: 'bigint',
  job_id: 'text',
  expires_at: 'bigint',
} as const
const DELETE_LABELS = command('jobs.deleteLabels', (words) =>
  words.either(
    `DELETE FROM job_label WHERE (account_id, key, value, created_at, job_id) IN (
       SELECT account_id, key, value, created_at, job_id FROM ${words.rows(':labels', LABEL)})`,
    `DELETE FROM job_label AS label USING ${words.rows(':labels', LABEL)} AS gone
     WHERE label.account_id = gone.account_id AND label.key = gone.key AND label.value = gone.value
       AND label.created_at = gone.created_at AND label.job_id = gone.job_id::uuid AND label.expires_at = gone.expires_at`,
  ),
)

const output = shape({ accountId: text(), hash: text(), sizeBytes: integer() })
const DELETE_OUTPUTS = query(
  'jobs.deleteOutputs',
  output,
  postgresOnly(`${ofIds('output')} RETURNING account_id, hash, size_bytes`),
)
const OFFER_OUTPUTS = command(
  'jobs.offerOutputs',
  sqliteOnly(`
    INSERT INTO blob_candidate (hash, size_bytes, since)
    SELECT hash, max(size_bytes), :now FROM job_output WHERE seq IN (SELECT value FROM json_each(:seqs)) GROUP BY hash
    ON CONFLICT (hash) DO UPDATE SET since = max(since, excluded.since)`),
)
const DELETE_ASSETS = command(
  'jobs.deleteAssets',
  sqliteOnly(`DELETE FROM asset WHERE id IN (
    SELECT asset_id FROM job_output WHERE seq IN (SELECT value FROM json_each(:seqs)))`),
)
const DELETE_LISTED = command('jobs.deleteListed', sqliteOnly(ofSeqs('job_output')))

type OutputRecord = RowOf<typeof output>

/** Removes ended jobs with everything that belongs to them. */
function* removeEnded(ids: readonly string[], now: Date): Steps<number> {
  if (ids.length === 0) return 0
  const gone = yield* all(DELETE_JOBS, { ids })
  const seqs = gone.map(({ seq }) => seq)
  const [outputs] = yield* together(
    all(DELETE_OUTPUTS, { ids }),
    run(OFFER_OUTPUTS, { seqs, now }),
    run(DELETE_ASSETS, { seqs }),
    run(DELETE_LISTED, { seqs }),
    ...DELETE_PARTS.map((remove) => run(remove, { seqs, ids })),
  )
  const labels = gone.flatMap(toLabels)
  if (labels.length > 0) yield* run(DELETE_LABELS, toRows('labels', labels))
  yield* giveBackCounts(gone)
  yield* giveBackOutputs(outputs, now)
  return gone.length
}

/** Outputs that are kept no longer: they stop counting for storage, and their blobs may go. */
export function* giveBackOutputs(outputs: readonly OutputRecord[], now: Date): Steps<void> {
  yield* removeRecords(outputs)
  yield* offerBlobs(outputs, now)
}

const held = pick(jobRow, 'accountId', 'status')
const LOCK_HELD = query(
  'jobs.lockForWithdraw',
  held,
  ({ lock }) => `SELECT account_id, status FROM job WHERE id = :jobId AND lease_id = :leaseId AND status = 'running'
    ${lock('NO KEY UPDATE')}`,
)
const DROP_KEY = command(
  'jobs.dropKey',
  'DELETE FROM idempotency_key WHERE account_id = :accountId AND job_id = :jobId',
)

/** A job that ends before its submit was answered: its key may be used again, and nothing of it is charged or listed. */
export function* withdrawJob({ jobId, leaseId }: Lease, now: Date): Steps<boolean> {
  const found = yield* get(LOCK_HELD, { jobId, leaseId })
  if (found === undefined) return false
  const { accountId, status: from } = found
  yield* endJobs([{ id: jobId, from, to: 'failed', at: now, error: null, isLost: true }])
  yield* removeEnded([jobId], now)
  yield* run(DROP_KEY, { accountId, jobId })
  yield* withdrawTickets(jobId)
  return true
}

function toLabels({ accountId, id, createdAt, expiresAt, metadata }: RowOf<typeof removed>) {
  const pairs = metadata === null ? [] : Object.entries(JSON.parse(metadata) as Record<string, string>)
  const of = { account_id: accountId, created_at: createdAt, job_id: id, expires_at: expiresAt }
  return pairs.map(([key, value]) => ({ ...of, key, value }))
}

const LOCK_LOADS = command(
  'jobs.lockLoads',
  postgresOnly('SELECT 1 FROM account_load WHERE account_id = ANY(:accountIds) ORDER BY account_id FOR NO KEY UPDATE'),
)
const COUNT_GONE = command('jobs.countGone', (words) => {
  const [table, key] = words.dialect === 'sqlite' ? ['account', 'id'] : ['account_load', 'account_id']
  const count = (status: string) => `CAST(sum(CASE status WHEN '${status}' THEN 1 ELSE 0 END) AS bigint) AS ${status}`
  return `
    UPDATE ${table} SET succeeded = ${table}.succeeded - gone.succeeded, canceled = ${table}.canceled - gone.canceled,
      failed = ${table}.failed - gone.failed, expired = ${table}.expired - gone.expired
    FROM (
      SELECT account_id, ${['succeeded', 'canceled', 'failed', 'expired'].map(count).join(', ')}
      FROM ${words.rows(':gone', { account_id: 'text', status: 'text' })} AS job GROUP BY account_id) AS gone
    WHERE ${table}.${key} = gone.account_id`
})

/** Jobs that are kept no longer. */
export function* giveBackCounts(gone: readonly { readonly accountId: string; readonly status: string }[]): Steps<void> {
  if (gone.length === 0) return
  const accountIds = [...new Set(gone.map(({ accountId }) => accountId))]
  const counts = gone.map(({ accountId, status }) => ({ account_id: accountId, status }))
  yield* together(run(LOCK_LOADS, { accountIds }), run(COUNT_GONE, toRows('gone', counts)))
}
