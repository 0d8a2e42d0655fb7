/** The outputs of jobs: what a job lists, and the asset records over their bytes. */
import type { Output } from '../../../../domain/jobs/job.ts'
import type { JobStore } from '../../../../domain/jobs/job-store.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { command, query, toRows } from '../../statements/statement.ts'
import { flag, integer, shape, text } from '../../tables/table.ts'

/** The outputs that a write brings for one job, which is locked. */
interface OutputAddition {
  readonly seq: number
  readonly id: string
  readonly accountId: string
  readonly expiresAt: Date
  /** How many the job lists so far. */
  readonly outputCount: number
  readonly outputs: readonly Output[]
  readonly now: Date
}

interface AddedOutputs {
  /** How many each job lists now, by its id; only of jobs that got some. */
  readonly counts: ReadonlyMap<string, number>
  /** Records that are new: they are to be counted for their accounts. */
  readonly records: readonly { readonly accountId: string; readonly hash: string; readonly sizeBytes: number }[]
}

// In Postgres outputs are rows of one table, by the expiry of their job; in SQLite a list beside the records of assets.
const FIND_EXISTING = query(
  'outputs.existing',
  shape({ assetId: text(), jobId: text(), isListed: flag('boolean') }),
  (words) =>
    words.either(
      `SELECT asset.id AS asset_id, asset.job_id, job_output.seq IS NOT NULL AS is_listed
       FROM ${words.rows(':wanted', { id: 'text', expires_at: 'bigint', seq: 'bigint' })} AS wanted JOIN asset ON asset.id = wanted.id
       LEFT JOIN job_output ON job_output.seq = wanted.seq AND job_output.asset_id = asset.id`,
      `SELECT output.id AS asset_id, output.job_id, output.position IS NOT NULL AS is_listed
       FROM ${words.rows(':wanted', { id: 'text', expires_at: 'bigint', seq: 'bigint' })} AS wanted CROSS JOIN LATERAL (
         SELECT id, job_id, position FROM output WHERE id = wanted.id AND expires_at = wanted.expires_at OFFSET 0) AS output`,
    ),
)
const ROW = {
  ...({
    id: 'text',
    account_id: 'text',
    job_id: 'uuid',
    seq: 'bigint',
    position: 'integer',
    node_id: 'text',
    name: 'text',
  } as const),
  ...({
    type: 'text',
    content_type: 'text',
    size_bytes: 'bigint',
    hash: 'text',
    file_path: 'text',
    subfolder: 'text',
  } as const),
  ...({ created_at: 'bigint', expires_at: 'bigint' } as const),
}
const COLUMNS = 'position, node_id, name, type, content_type, size_bytes, hash'
const ADD = command('outputs.add', (words) =>
  words.dialect === 'sqlite'
    ? null
    : `INSERT INTO output (id, account_id, job_id, file_path, subfolder, created_at, expires_at, ${COLUMNS})
       SELECT id, account_id, job_id, file_path, subfolder, created_at, expires_at, ${COLUMNS} FROM ${words.rows(':rows', ROW)} AS added
       ON CONFLICT (id, expires_at) DO UPDATE SET position = excluded.position, node_id = excluded.node_id, name = excluded.name,
         type = excluded.type, content_type = excluded.content_type, file_path = excluded.file_path, subfolder = excluded.subfolder`,
)
const ADD_ASSETS = command('outputs.addAssets', (words) =>
  words.dialect === 'postgres'
    ? null
    : `INSERT INTO asset (id, account_id, hash, size_bytes, content_type, file_path, subfolder, tags, created_at, expires_at, job_id)
       SELECT id, account_id, hash, size_bytes, content_type, file_path, subfolder, '[]', created_at, expires_at, job_id
       FROM ${words.rows(':rows', ROW)} WHERE true
       ON CONFLICT (id) DO UPDATE SET file_path = excluded.file_path, subfolder = excluded.subfolder`,
)
const ADD_LISTED = command('outputs.addListed', (words) =>
  words.dialect === 'postgres'
    ? null
    : `INSERT INTO job_output (seq, asset_id, ${COLUMNS}) SELECT seq, id, ${COLUMNS} FROM ${words.rows(':rows', ROW)}
       WHERE position IS NOT NULL`,
)

/**
 * Adds the outputs that are not there yet: a write repeated after an unknown outcome is harmless. An output that an earlier attempt
 * made already keeps its record, under its new name.
 */
export function* addOutputs(additions: readonly OutputAddition[]): Steps<AddedOutputs> {
  const wanted = additions.flatMap(({ outputs, expiresAt, seq }) =>
    outputs.map(({ assetId }) => ({ id: assetId, expires_at: expiresAt, seq })),
  )
  const counts = new Map<string, number>()
  if (wanted.length === 0) return { counts, records: [] }
  const found = yield* all(FIND_EXISTING, toRows('wanted', wanted))
  const existing = new Map(found.map(({ assetId, jobId, isListed }) => [assetId, { jobId, isListed }]))
  const records: { accountId: string; hash: string; sizeBytes: number }[] = []
  // By id, because one statement writes a row once: where a file is there twice, the listed one counts.
  const rows = new Map<string, ReturnType<typeof toRow>>()
  for (const addition of additions) {
    const { id: jobId, accountId } = addition
    let position = addition.outputCount
    for (const output of addition.outputs) {
      const { assetId, hash, sizeBytes } = output
      const isListed = output.location?.isUnlisted !== true
      const known = existing.get(assetId)
      if (known !== undefined && (known.isListed || !isListed || known.jobId !== jobId)) continue
      if (known === undefined) records.push({ accountId, hash, sizeBytes })
      existing.set(assetId, { jobId, isListed })
      rows.set(assetId, toRow(addition, output, isListed ? position : null))
      if (isListed) position += 1
    }
    counts.set(jobId, position)
  }
  if (rows.size > 0) {
    const added = toRows('rows', [...rows.values()])
    yield* run(ADD, added)
    yield* run(ADD_ASSETS, added)
    yield* run(ADD_LISTED, added)
  }
  return { counts, records }
}

function toRow({ seq, id, accountId, expiresAt, now }: OutputAddition, output: Output, position: number | null) {
  const { assetId, nodeId, name, type, contentType, sizeBytes, hash, location } = output
  return {
    ...{ id: assetId, account_id: accountId, job_id: id, seq, position, node_id: nodeId, name, type },
    ...{ content_type: contentType, size_bytes: sizeBytes, hash, created_at: now, expires_at: expiresAt },
    file_path: location?.folder === 'temp' ? `temp/${name}` : name,
    subfolder: location?.subfolder || null,
  }
}

const RESERVE = query(
  'outputs.reserveNumbers',
  shape({ last: integer() }),
  `INSERT INTO output_number AS known (account_id, folder, prefix, last) VALUES (:accountId, :folder, :prefix, :count)
   ON CONFLICT (account_id, folder, prefix) DO UPDATE SET last = known.last + excluded.last RETURNING last`,
)

/** Numbers are counted per account, folder and prefix, and never given twice. Returns the first of those reserved. */
export function* reserveOutputNumbers(
  ...[accountId, folder, prefix, count]: Parameters<JobStore['reserveOutputNumbers']>
): Steps<number> {
  const last = (yield* get(RESERVE, { accountId, folder, prefix, count }))?.last ?? count
  return last - count + 1
}
