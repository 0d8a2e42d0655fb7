/** How jobs were submitted, as it is kept beside them, and what their owners take out of the history. */
import type { Submission } from '../../../../../domain/jobs/job.ts'
import { type Queryable, statement } from '../../database/statement.ts'

export interface SubmissionRow {
  readonly workflowId: string | null
  readonly text: string
}

export function toSubmissionRow({ workflowId, ...rest }: Submission): SubmissionRow {
  return { workflowId, text: JSON.stringify(rest) }
}

export function toSubmission({ workflowId, text }: SubmissionRow): Submission {
  return { workflowId, ...(JSON.parse(text) as Omit<Submission, 'workflowId'>) }
}

interface HideInput {
  readonly accountId: string
  /** null: everything that has ended until `now`. */
  readonly jobIds: readonly string[] | null
  readonly now: number
}

const CLEAR = statement(
  'history.clear',
  `INSERT INTO history_clear (account_id, at) VALUES ($1, $2)
   ON CONFLICT (account_id) DO UPDATE SET at = greatest(history_clear.at, excluded.at)`,
)
const HIDE = statement(
  'history.hide',
  `UPDATE job_done SET is_hidden = true
   WHERE id = ANY($1::uuid[]) AND account_id = $2 AND status IN ('succeeded', 'failed', 'canceled') AND NOT is_hidden`,
)

export async function hideHistory(db: Queryable, { accountId, jobIds, now }: HideInput): Promise<void> {
  if (jobIds === null) await db.run(CLEAR, [accountId, now])
  else await db.run(HIDE, [jobIds, accountId])
}
