/** The outputs that jobs list. */
import type { DatabaseSync } from 'node:sqlite'
import type { OutputRow } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'

export function prepareOutputs(database: DatabaseSync): (seq: number) => OutputRow[] {
  const select = prepareRows<OutputRow>(
    database,
    `SELECT asset_id, node_id, name, type, content_type, size_bytes, hash FROM job_output WHERE seq = ? ORDER BY position`,
  )
  return (seq) => select.all(seq)
}
