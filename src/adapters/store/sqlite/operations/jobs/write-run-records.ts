/** How jobs were submitted and what their runs showed: the writes that belong to other operations, and hiding. */
import type { DatabaseSync } from 'node:sqlite'
import type { Submission } from '../../../../../domain/jobs/job.ts'
import { prepareRows } from '../statement.ts'

export type SubmissionRow = readonly [workflowId: string | null, text: string]

export function toSubmissionRow({ workflowId, ...rest }: Submission): SubmissionRow {
  return [workflowId, JSON.stringify(rest)]
}

export function toSubmission([workflowId, text]: SubmissionRow): Submission {
  return { workflowId, ...(JSON.parse(text) as Omit<Submission, 'workflowId'>) }
}

export function prepareIsTaken(database: DatabaseSync): (jobId: string) => boolean {
  const select = prepareRows<[number]>(database, 'SELECT 1 FROM job WHERE id = ?')
  return (jobId) => select.get(jobId) !== undefined
}

export function prepareAddSubmission(database: DatabaseSync): (seq: number, row: SubmissionRow) => void {
  const insert = database.prepare('INSERT INTO job_submission (seq, workflow_id, text) VALUES (?, ?, ?)')
  return (seq, row) => {
    insert.run(seq, ...row)
  }
}

interface HideInput {
  readonly accountId: string
  /** null: everything that has ended until `now`. */
  readonly jobIds: readonly string[] | null
  readonly now: number
}

export function prepareHideHistory(database: DatabaseSync): (input: HideInput) => void {
  const clear = database.prepare('INSERT OR REPLACE INTO history_clear (account_id, at) VALUES (?, ?)')
  const hide = database.prepare(`
    INSERT OR IGNORE INTO job_hidden (seq)
    SELECT seq FROM job WHERE id = ? AND account_id = ? AND status IN ('succeeded', 'failed', 'canceled')`)
  return ({ accountId, jobIds, now }) => {
    if (jobIds === null) clear.run(accountId, now)
    else for (const jobId of jobIds) hide.run(jobId, accountId)
  }
}
