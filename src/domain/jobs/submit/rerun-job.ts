/**
 * The executed graph of a job as a new one. Files in an executed graph are named by their content: the new job has the very same
 * ones. It gets the labels that the submitter chose, the priority and the pool, and pays its own price.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { type JsonValue, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Job } from '../job.ts'
import { type JobReader, noSuchJob } from '../read/job-reader.ts'
import type { RunRecords } from '../read/recorded-jobs.ts'
import type { SummaryStore } from '../summaries/summary-store.ts'
import { ownLabels } from './job-labels.ts'
import { shownLayout } from './job-origin.ts'
import type { Submit } from './submit-job.ts'

interface RerunRequest {
  readonly accountId: string
  /** In the name of which key; null: of none. */
  readonly keyId: string | null
  readonly jobId: string
  /** Left out: as it was. */
  readonly change?: (workflow: JsonValue) => JsonValue
  /** Left out: those that its submitter chose. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly idempotencyKey: string | null
}

/** Throws not_found, forbidden for a workflow that its owner keeps, and whatever a submit is refused with. */
export type RerunJob = (request: RerunRequest) => Promise<Job>

interface RerunDeps {
  readonly reader: Pick<JobReader, 'find' | 'workflow'>
  readonly records: Pick<RunRecords, 'find'>
  readonly summaries: Pick<SummaryStore, 'findDetails'>
  readonly submit: Submit
  /** The common one, which a submit does not name. */
  readonly commonPool: string
  readonly clock: Clock
}

export function createRerunJob({ reader, records, summaries, submit, commonPool, clock }: RerunDeps): RerunJob {
  return async ({ accountId, keyId, jobId, change = (same) => same, metadata, idempotencyKey }) => {
    const [before, text, record, details] = await Promise.all([
      reader.find(accountId, jobId),
      reader.workflow(accountId, jobId),
      records.find(accountId, jobId),
      summaries.findDetails(accountId, jobId, clock.now()),
    ])
    if (record === null || details === null) throw noSuchJob()
    return submit({
      ...{ accountId, keyId, idempotencyKey, priority: before.priority },
      workflow: change(parseLosslessJson(text)),
      metadata: metadata ?? ownLabels(before.metadata),
      pool: before.pool === commonPool ? null : before.pool,
      // What the editor sent is not sent again: with other values it would say what is not so.
      extraData: null,
      layout: shownLayout(record.submission, details.origin),
    })
  }
}
