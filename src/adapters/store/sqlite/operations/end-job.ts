/**
 * The end of a job, whoever brings it about: the row, its account's counters, its references to input blobs and its sealed
 * credentials change together. The caller has checked that the move is allowed.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { JobStatus } from '../../../../domain/jobs/transitions.ts'
import { prepareRows } from './statement.ts'

export type EndStatus = Extract<JobStatus, 'succeeded' | 'failed' | 'canceled' | 'expired'>

export interface JobEnd {
  readonly seq: number
  readonly accountId: string
  readonly from: JobStatus
  readonly to: EndStatus
  readonly at: number
  readonly error: string | null
}

/** Ends the job and returns its new version. */
export type EndJob = (end: JobEnd) => number

export function prepareEndJob(database: DatabaseSync): EndJob {
  const update = prepareRows<[version: number, inputCount: number, needsExtraData: number]>(
    database,
    `UPDATE job SET status = ?2, completed_at = ?3, error = ?4, lease_id = NULL, lease_until = NULL, version = version + 1
     WHERE seq = ?1 RETURNING version, input_count, needs_extra_data`,
  )
  const count = database.prepare(`
    UPDATE account SET queued = queued - ?2, running = running - ?3, succeeded = succeeded + (?4 = 'succeeded'),
      canceled = canceled + (?4 = 'canceled'), failed = failed + (?4 = 'failed'), expired = expired + (?4 = 'expired')
    WHERE id = ?1`)
  const offerInputs = database.prepare(`
    INSERT INTO blob_candidate (hash, size_bytes, since) SELECT hash, size_bytes, ?2 FROM job_input WHERE seq = ?1
    ON CONFLICT (hash) DO UPDATE SET since = max(since, excluded.since)`)
  const dropInputs = database.prepare('DELETE FROM job_input WHERE seq = ?')
  const dropSecret = database.prepare('DELETE FROM job_secret WHERE seq = ?')
  return ({ seq, accountId, from, to, at, error }) => {
    const row = update.get(seq, to, at, error)
    if (row === undefined) throw new Error(`No job at ${seq}.`)
    const [version, inputCount, needsExtraData] = row
    const wasQueued = from === 'queued' ? 1 : 0
    count.run(accountId, wasQueued, 1 - wasQueued, to)
    if (inputCount > 0) {
      offerInputs.run(seq, at)
      dropInputs.run(seq)
    }
    if (needsExtraData === 1) dropSecret.run(seq)
    return version
  }
}
