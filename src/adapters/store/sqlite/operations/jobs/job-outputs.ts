/** The outputs of jobs: their rows, the asset records that come with them, and the numbers in their names. */

import type { DatabaseSync } from 'node:sqlite'
import type { Output } from '../../../../../domain/jobs/job.ts'
import type { OutputRow } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'

export function prepareOutputs(database: DatabaseSync): (seq: number) => OutputRow[] {
  const select = prepareRows<OutputRow>(
    database,
    `SELECT asset_id, node_id, name, type, content_type, size_bytes, hash FROM job_output WHERE seq = ? ORDER BY position`,
  )
  return (seq) => select.all(seq)
}

/** An output with its location: the path of its record, its folder below the top, and whether it is listed. */
export type NewOutputRow = readonly [...output: OutputRow, filePath: string, subfolder: string | null, isListed: number]

export function toNewOutputRow(output: Output): NewOutputRow {
  const { assetId, nodeId, name, type, contentType, sizeBytes, hash, location } = output
  const filePath = location?.folder === 'temp' ? `temp/${name}` : name
  const isListed = location?.isUnlisted === true ? 0 : 1
  return [assetId, nodeId, name, type, contentType, sizeBytes, hash, filePath, location?.subfolder || null, isListed]
}

/** The job that the outputs belong to. */
interface OutputOwner {
  readonly seq: number
  readonly jobId: string
  readonly accountId: string
  readonly expiresAt: number
  readonly outputCount: number
}

/**
 * Adds the outputs that are not there yet and returns how many the job has: a write repeated after an unknown outcome is harmless.
 * An output that an earlier attempt made already keeps its record, under its new name.
 */
export function prepareAddOutputs(
  database: DatabaseSync,
): (owner: OutputOwner, outputs: readonly NewOutputRow[], now: number) => number {
  const insertAsset = database.prepare(`
    INSERT INTO asset
      (id, account_id, hash, size_bytes, content_type, file_path, subfolder, tags, created_at, expires_at, job_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, ?) ON CONFLICT (id) DO NOTHING`)
  const insertOutput = database.prepare(`
    INSERT INTO job_output (seq, position, asset_id, node_id, name, type, content_type, size_bytes, hash)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const findListed = prepareRows<[number]>(database, 'SELECT 1 FROM job_output WHERE seq = ? AND asset_id = ?')
  const rename = database.prepare('UPDATE asset SET file_path = ?, subfolder = ? WHERE id = ? AND job_id = ?')
  return ({ seq, jobId, accountId, expiresAt, outputCount }, outputs, now) => {
    let position = outputCount
    for (const output of outputs) {
      const [assetId, nodeId, name, type, contentType, sizeBytes, hash, filePath, subfolder, isListed] = output
      const bytes = [hash, sizeBytes, contentType] as const
      const asset = insertAsset.run(assetId, accountId, ...bytes, filePath, subfolder, now, expiresAt, jobId)
      if (isListed === 0) continue
      if (asset.changes === 0) {
        const isThere = findListed.get(seq, assetId) !== undefined
        if (isThere || rename.run(filePath, subfolder, assetId, jobId).changes === 0) continue
      }
      insertOutput.run(seq, position, assetId, nodeId, name, type, contentType, sizeBytes, hash)
      position += 1
    }
    return position
  }
}

export interface ReserveInput {
  readonly accountId: string
  readonly folder: string
  readonly prefix: string
  readonly count: number
}

/** Numbers are counted per account, folder and prefix, and never given twice. Returns the first of those reserved. */
export function prepareReserveOutputNumbers(database: DatabaseSync): (input: ReserveInput) => number {
  const advance = prepareRows<[number]>(
    database,
    `INSERT INTO output_number (account_id, folder, prefix, last) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (account_id, folder, prefix) DO UPDATE SET last = last + ?4 RETURNING last`,
  )
  return ({ accountId, folder, prefix, count }) => {
    const last = advance.get(accountId, folder, prefix, count)?.[0] ?? count
    return last - count + 1
  }
}
