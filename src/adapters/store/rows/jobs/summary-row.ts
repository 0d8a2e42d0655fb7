/** A job in short as both stores select it, and the way to a `JobSummary`. */
import type { JobError, Progress } from '../../../../domain/jobs/job.ts'
import { titleOf } from '../../../../domain/jobs/summaries/job-recipe.ts'
import { type JobSummary, SUMMARY_MESSAGE_LENGTH } from '../../../../domain/jobs/summaries/summary-store.ts'
import { toDate } from '../row-date.ts'
import type { JobRowHead } from './job-row.ts'

/**
 * Where the traceback begins in the JSON of an error, as a literal of SQL; it is the last member. Inside of a text every quote has a
 * backslash before it, so these letters stand nowhere else.
 */
export const TRACEBACK = `',"traceback":'`

export type SummaryRow = readonly [
  ...head: JobRowHead,
  engineId: string | null,
  metadata: string | null,
  progress: string | null,
  /** JSON, without its traceback, and then perhaps without the brace behind it. */
  error: string | null,
  recipeTitle: string | null,
  chargedMicros: number | null,
  thumbId: string | null,
  reusedFrom: string | null,
]

export type StoredSummary = readonly [row: SummaryRow, queuePosition: number | null]

export function toSummary([row, queuePosition]: StoredSummary): JobSummary {
  const [, id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, ...rest] = row
  const [attempt, version, outputs, engineId, metadataText, progress, errorText, title, ...last] = rest
  const [charged, thumbId, reusedFrom] = last
  const metadata = metadataText === null ? {} : (JSON.parse(metadataText) as Record<string, string>)
  return {
    ...{
      id,
      accountId,
      pool,
      status,
      priority,
      attempt,
      version,
      outputs,
      queuePosition,
      metadata,
      charged,
      reusedFrom,
    },
    title: titleOf(metadata, title),
    engineId: status === 'queued' ? null : engineId,
    createdAt: new Date(createdAt),
    startedAt: toDate(startedAt),
    completedAt: toDate(completedAt),
    expiresAt: new Date(expiresAt),
    progress: progress === null ? null : (JSON.parse(progress) as Progress),
    error:
      errorText === null
        ? null
        : toError(JSON.parse(errorText.endsWith('}') ? errorText : `${errorText}}`) as JobError),
    thumb: thumbId === null ? null : { assetId: thumbId },
  }
}

function toError({ code, message, nodeId, classType }: JobError): JobSummary['error'] {
  return { code, message: message.slice(0, SUMMARY_MESSAGE_LENGTH), nodeId, classType }
}
