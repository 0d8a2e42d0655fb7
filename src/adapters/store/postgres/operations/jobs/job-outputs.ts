/** The outputs of jobs: at once the rows that a job lists and the asset records over their bytes. */

import type { Output } from '../../../../../domain/jobs/job.ts'
import type { Lease } from '../../../../../domain/jobs/job-store.ts'
import type { OutputRow } from '../../../rows/jobs/job-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { toText } from '../../database/texts.ts'

const OUTPUT_COLUMNS = 'id, node_id, name, type, content_type, size_bytes, hash'

// One index range per job, in the partition of its expiry.
const FIND = statement<[jobId: string, ...OutputRow]>(
  'outputs.find',
  `SELECT job.id, output.* FROM unnest($1::uuid[], $2::bigint[]) AS job(id, expires_at)
   CROSS JOIN LATERAL (
     SELECT ${OUTPUT_COLUMNS} FROM output
     WHERE job_id = job.id AND expires_at = job.expires_at AND position IS NOT NULL ORDER BY position) AS output`,
)

/** The listed outputs of these jobs, by job id. */
export async function findOutputs(
  db: Queryable,
  jobs: readonly { readonly id: string; readonly expiresAt: number }[],
): Promise<ReadonlyMap<string, readonly OutputRow[]>> {
  const outputs = new Map<string, OutputRow[]>()
  const found = await db.all(FIND, [jobs.map(({ id }) => id), jobs.map(({ expiresAt }) => expiresAt)])
  for (const [jobId, ...output] of found) {
    const others = outputs.get(jobId)
    if (others === undefined) outputs.set(jobId, [output])
    else others.push(output)
  }
  return outputs
}

// Under the job's lock, so that a worker that lost its lease takes nothing off the list of the next one.
const UNLIST = statement<OutputRow>(
  'outputs.unlist',
  `WITH held AS MATERIALIZED (SELECT id FROM job WHERE id = $1 AND lease_id = $2 FOR NO KEY UPDATE),
   listed AS MATERIALIZED (
     SELECT output.* FROM held JOIN output ON output.job_id = held.id
     WHERE output.expires_at = $3 AND output.position IS NOT NULL),
   unlisted AS (
     UPDATE output SET position = NULL FROM listed WHERE output.id = listed.id AND output.expires_at = $3)
   SELECT ${OUTPUT_COLUMNS} FROM listed ORDER BY position`,
)

/** What earlier attempts of a job showed is no longer listed with it; their records stay. Returns what was listed until now. */
export function unlistOutputs(
  db: Queryable,
  { jobId, leaseId, expiresAt }: Lease & { readonly expiresAt: number },
): Promise<OutputRow[]> {
  return db.all(UNLIST, [jobId, leaseId, expiresAt])
}

/** An output with its location: the path of its record, its folder below the top, and whether it is listed. */
export interface NewOutput {
  readonly row: OutputRow
  readonly filePath: string
  readonly subfolder: string | null
  readonly isListed: boolean
}

export function toNewOutput(output: Output): NewOutput {
  const { assetId, nodeId, type, contentType, sizeBytes, hash, location } = output
  const name = toText(output.name)
  return {
    row: [assetId, toText(nodeId), name, type, toText(contentType), sizeBytes, hash],
    filePath: location?.folder === 'temp' ? `temp/${name}` : name,
    subfolder: toText(location?.subfolder || null),
    isListed: location?.isUnlisted !== true,
  }
}

/** The outputs that a write brings for one job, which is locked. */
interface OutputAddition {
  readonly jobId: string
  readonly accountId: string
  readonly expiresAt: number
  /** How many the job lists so far. */
  readonly outputCount: number
  readonly outputs: readonly NewOutput[]
  readonly now: number
}

const FIND_EXISTING = statement<[assetId: string, jobId: string, isListed: boolean]>(
  'outputs.existing',
  `SELECT output.id, output.job_id, output.position IS NOT NULL FROM unnest($1::text[], $2::bigint[]) AS wanted(id, expires_at)
   CROSS JOIN LATERAL (
     SELECT id, job_id, position FROM output WHERE id = wanted.id AND expires_at = wanted.expires_at OFFSET 0) AS output`,
)

const INSERT = statement(
  'outputs.add',
  `INSERT INTO output AS known (id, account_id, job_id, position, node_id, name, type, content_type, size_bytes, hash,
     file_path, subfolder, created_at, expires_at)
   SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
     $9::bigint[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[])
   ON CONFLICT (id, expires_at) DO UPDATE SET position = excluded.position, node_id = excluded.node_id, name = excluded.name,
     type = excluded.type, content_type = excluded.content_type, file_path = excluded.file_path, subfolder = excluded.subfolder`,
)

interface AddedOutputs {
  /** How many each job lists now, by its id. */
  readonly counts: ReadonlyMap<string, number>
  /** Records that are new: they are to be counted for their accounts. */
  readonly records: readonly { readonly accountId: string; readonly hash: string; readonly sizeBytes: number }[]
}

/**
 * Adds the outputs that are not there yet: a write repeated after an unknown outcome is harmless. An output that an earlier attempt
 * made already keeps its record, under its new name.
 */
export async function addOutputs(tx: Queryable, additions: readonly OutputAddition[]): Promise<AddedOutputs> {
  const wanted = additions.flatMap(({ outputs, expiresAt }) => outputs.map(({ row: [id] }) => [id, expiresAt] as const))
  if (wanted.length === 0) return { counts: new Map(), records: [] }
  const found = await tx.all(FIND_EXISTING, [wanted.map(([id]) => id), wanted.map(([, expiresAt]) => expiresAt)])
  const existing = new Map(found.map(([id, jobId, isListed]) => [id, { jobId, isListed }]))
  const counts = new Map<string, number>()
  const records: { accountId: string; hash: string; sizeBytes: number }[] = []
  // By id, because one statement writes a row once: where a file is there twice, the listed one counts.
  const rows = new Map<string, unknown[]>()
  for (const { jobId, accountId, expiresAt, outputCount, outputs, now } of additions) {
    let position = outputCount
    for (const { row, filePath, subfolder, isListed } of outputs) {
      const [id, nodeId, name, type, contentType, sizeBytes, hash] = row
      const known = existing.get(id)
      if (known !== undefined && (known.isListed || !isListed || known.jobId !== jobId)) continue
      if (known === undefined) records.push({ accountId, hash, sizeBytes })
      existing.set(id, { jobId, isListed })
      const place = [accountId, jobId, isListed ? position : null, nodeId, name, type]
      rows.set(id, [id, ...place, contentType, sizeBytes, hash, filePath, subfolder, now, expiresAt])
      if (isListed) position += 1
    }
    counts.set(jobId, position)
  }
  if (rows.size > 0) await tx.run(INSERT, toColumns([...rows.values()]))
  return { counts, records }
}

function toColumns(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]))
}

const RESERVE = statement<[last: number]>(
  'outputs.reserve_numbers',
  `INSERT INTO output_number AS known (account_id, folder, prefix, last) VALUES ($1, $2, $3, $4)
   ON CONFLICT (account_id, folder, prefix) DO UPDATE SET last = known.last + excluded.last RETURNING last`,
)

interface Reservation {
  readonly accountId: string
  readonly folder: string
  readonly prefix: string
  readonly count: number
}

/**
 * Numbers are counted per account, folder and prefix, and never given twice, so the write must be durable. Returns the first of those
 * reserved.
 */
export async function reserveOutputNumbers(db: Queryable, reservation: Reservation): Promise<number> {
  const { accountId, folder, prefix, count } = reservation
  const [last] = (await db.get(RESERVE, [accountId, toText(folder), toText(prefix), count])) ?? [count]
  return last - count + 1
}
