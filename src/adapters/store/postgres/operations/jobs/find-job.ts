/**
 * Reads of one job. A job of another account and one past its retention look exactly like one that never was. A job is in `job`
 * while it lives and in `job_done` afterwards: one statement asks both, so it is never found in both and never in neither.
 */

import { isUuid } from '../../../../../../lib/ids.ts'
import { COLUMN, type JobRow, type OutputRow, type StoredJob } from '../../../rows/jobs/job-row.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { DONE_COLUMNS, LIVE_COLUMNS } from './job-row.ts'
import { findPositions } from './queue-position.ts'

export interface JobQuery {
  readonly accountId: string
  readonly jobId: string
  readonly now: number
}

/** A row with its outputs, null for none: they are of the same instant. */
export type FoundJob = readonly [...row: JobRow, outputs: readonly OutputRow[] | null]

/** A column with the listed outputs of the job in the row `name`. */
export function outputsOf(name: string): string {
  return `CASE WHEN ${name}.output_count > 0 THEN (
    SELECT json_agg(json_build_array(id, node_id, output.name, type, content_type, size_bytes, hash) ORDER BY position)
    FROM output WHERE job_id = ${name}.id AND expires_at = ${name}.expires_at AND position IS NOT NULL) END`
}

const FIND = statement<FoundJob>(
  'jobs.find',
  `WITH found AS MATERIALIZED (
     SELECT ${LIVE_COLUMNS} FROM job WHERE id = ANY($1::uuid[])
     UNION ALL SELECT ${DONE_COLUMNS} FROM job_done WHERE id = ANY($1::uuid[]))
   SELECT found.*, ${outputsOf('found')} FROM found`,
)

// Live jobs past their deadline still show, until the sweep makes them `expired`; those show until they are removed.
function isVisible(row: JobRow, { accountId, now }: JobQuery): boolean {
  if (row[COLUMN.accountId] !== accountId) return false
  const mustBeRetained = row[COLUMN.completedAt] !== null && row[COLUMN.status] !== 'expired'
  return !mustBeRetained || row[COLUMN.expiresAt] > now
}

const FOUND_AT_ONCE = 256

/** Jobs that are asked for at the same time are read together. */
export function createFindJob(read: Connected): (query: JobQuery) => Promise<StoredJob | null> {
  const find = createGather<JobQuery, StoredJob | null>({
    run: (queries) => findJobs(read, queries),
    onBatch: read.noteBatch,
    maxItems: FOUND_AT_ONCE,
    maxRunning: 2,
  })
  return async (query) => (isUuid(query.jobId) ? find(query) : null)
}

async function findJobs(read: Queryable, queries: readonly JobQuery[]): Promise<(StoredJob | null)[]> {
  const found = await read.all(FIND, [[...new Set(queries.map(({ jobId }) => jobId))]])
  const stored = new Map((await addPositions(read, found)).map((job) => [job[0][COLUMN.id], job]))
  return queries.map((query) => {
    const job = stored.get(query.jobId)
    return job !== undefined && isVisible(job[0], query) ? job : null
  })
}

const LIVE_VERSIONS = statement<[id: string, version: number]>(
  'jobs.find_live_versions',
  'SELECT id, version FROM job WHERE id = ANY($1::uuid[])',
)

/** Versions that are asked for at the same time are read together. */
export function createFindLiveVersion(read: Connected): (jobId: string) => Promise<number | null> {
  return createGather<string, number | null>({
    async run(jobIds) {
      const versions = new Map(await read.all(LIVE_VERSIONS, [[...new Set(jobIds)]]))
      return jobIds.map((jobId) => versions.get(jobId) ?? null)
    },
    onBatch: read.noteBatch,
    maxItems: FOUND_AT_ONCE,
    maxRunning: 2,
  })
}

/** Adds their positions in the queue to those that wait. */
export async function addPositions(db: Queryable, found: readonly FoundJob[]): Promise<StoredJob[]> {
  const rows = found.map((job) => job.slice(0, -1) as unknown as JobRow)
  const waiting = rows.filter((row) => row[COLUMN.status] === 'queued')
  const positions = await findPositions(db, waiting.map(toQueued))
  return rows.map((row, index) => {
    const outputs = (found[index]?.at(-1) ?? null) as readonly OutputRow[] | null
    return [row, outputs, row[COLUMN.status] === 'queued' ? (positions.get(row[COLUMN.seq]) ?? 1) : null]
  })
}

function toQueued(row: JobRow) {
  return {
    seq: row[COLUMN.seq],
    accountId: row[COLUMN.accountId],
    pool: row[COLUMN.pool],
    priority: row[COLUMN.priority],
  }
}
