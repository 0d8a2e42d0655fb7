/**
 * The end of a job, whoever brings it about: the row, its account's counters, its credit hold, its references to input blobs
 * and what was kept of its `extra_data` change together. The caller has checked that the move is allowed.
 */

import type { DatabaseSync } from 'node:sqlite'
import { jobHoldId } from '../../../../../domain/credits/ledger.ts'
import { chargeOf } from '../../../../../domain/jobs/end/charge.ts'
import type { JobError } from '../../../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type JobRow } from '../../../rows/jobs/job-row.ts'
import { OUTPUT_TYPES } from '../../../rows/jobs/output-types.ts'
import type { EndStatus } from '../../../rows/jobs/run-commit.ts'
import { prepareLedger } from '../ledger.ts'
import { prepareRows } from '../statement.ts'
import { JOB_COLUMNS } from './job-row.ts'
import { HAS_CREDENTIALS, HAS_NOTES } from './submit-job.ts'

interface JobEnd {
  readonly seq: number
  readonly accountId: string
  readonly from: JobStatus
  readonly to: EndStatus
  readonly at: number
  readonly error: string | null
  /** It is the worker's own end: asked again under the same lease, the store knows it. */
  readonly keepsLease?: boolean
  /** The service lost the run: nobody pays for it, whatever the job ends as. */
  readonly isLost?: boolean
}

/** Ends the job and returns its row as it now is. */
export type EndJob = (end: JobEnd) => JobRow

type Terms = [inputCount: number, extraDataFlags: number, perSecondMicros: number | null, minimumMicros: number | null]

const TERMS = 'input_count, needs_extra_data, price_second, price_minimum'
const TERM_COUNT = 4

export function prepareEndJob(database: DatabaseSync): EndJob {
  const update = prepareRows<[...JobRow, ...Terms]>(
    database,
    `UPDATE job SET status = ?2, completed_at = ?3, error = ?4, code = ?5, lease_id = iif(?6, lease_id, NULL),
       lease_until = NULL, version = version + 1,
       output_types = iif(output_count = 0, 0, (SELECT ${OUTPUT_TYPES} FROM job_output WHERE job_output.seq = ?1))
     WHERE seq = ?1
     RETURNING ${JOB_COLUMNS}, ${TERMS}`,
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
  const dropNotes = database.prepare('DELETE FROM job_notes WHERE seq = ?')
  const closeHold = prepareCloseHold(database)
  return (end) => {
    const { seq, accountId, from, to, at, error } = end
    const code = error === null ? null : (JSON.parse(error) as JobError).code
    const ended = update.get(seq, to, at, error, code, Number(end.keepsLease ?? false))
    if (ended === undefined) throw new Error(`No job at ${seq}.`)
    const row = ended.slice(0, -TERM_COUNT) as unknown as JobRow
    const terms = ended.slice(-TERM_COUNT) as Terms
    const [inputCount, extraDataFlags] = terms
    const wasQueued = from === 'queued' ? 1 : 0
    count.run(accountId, wasQueued, 1 - wasQueued, to)
    if (inputCount > 0) {
      offerInputs.run(seq, at)
      dropInputs.run(seq)
    }
    if ((extraDataFlags & HAS_CREDENTIALS) !== 0) dropSecret.run(seq)
    if ((extraDataFlags & HAS_NOTES) !== 0) dropNotes.run(seq)
    closeHold(end, row, terms)
    return row
  }
}

/** Charges for the run, or gives the hold back. A job is charged once: its hold is closed by whatever ends it first. */
function prepareCloseHold(database: DatabaseSync): (end: JobEnd, row: JobRow, terms: Terms) => void {
  const ledger = prepareLedger(database)
  return ({ from, to, at, error, isLost = false }, row, [, , perSecondMicros, minimumMicros]) => {
    if (perSecondMicros === null || minimumMicros === null) return
    const [id, startedAt, attempt] = [row[COLUMN.id], row[COLUMN.startedAt], row[COLUMN.attempt]]
    const errorCode = error === null ? null : (JSON.parse(error) as JobError).code
    const run = { from, to, errorCode, startedAt, endedAt: at }
    const micros = isLost ? 0 : chargeOf({ perSecondMicros, minimumMicros }, run)
    const holdId = jobHoldId(id)
    if (micros === 0) ledger.close({ kind: 'release', holdId, micros, at, memo: errorCode ?? to })
    else
      ledger.close({
        kind: 'settle',
        holdId,
        micros,
        at,
        memo: `${to}, attempt ${attempt}, ${at - (startedAt ?? at)} ms`,
      })
  }
}
