/** How attempts that ended before their job are kept with it: JSON lists in one text. */
import type { JobAttempt } from '../../../../domain/jobs/summaries/summary-store.ts'

export type AttemptEnd = JobAttempt['why']

/** No more are added to a text that is longer. */
export const ATTEMPTS_LENGTH = 4000

type AttemptFields = readonly [
  number: number,
  engineId: string | null,
  from: number | null,
  to: number,
  why: AttemptEnd,
]

export function toAttempts(text: string | null): JobAttempt[] {
  const fields = text === null ? [] : (JSON.parse(text) as AttemptFields[])
  return fields.map(([number, engineId, from, to, why]) => ({
    ...{ number, engineId, why },
    from: from === null ? null : new Date(from),
    to: new Date(to),
  }))
}
