/** The outputs of jobs: at once the rows that a job lists and the asset records over their bytes. */
import type { Output, OutputType } from '../../../../../domain/jobs/job.ts'
import { type Queryable, statement } from '../../database/statement.ts'

export type OutputRow = readonly [
  assetId: string,
  nodeId: string,
  name: string,
  type: OutputType,
  contentType: string,
  sizeBytes: number,
  hash: string,
]

export function toOutput([assetId, nodeId, name, type, contentType, sizeBytes, hash]: OutputRow): Output {
  return { assetId, nodeId, name, type, contentType, sizeBytes, hash }
}

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
