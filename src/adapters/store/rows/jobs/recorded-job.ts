/** A job with how it was submitted and what its run showed, as both stores give it to the domain. */
import type { Submission } from '../../../../domain/jobs/job.ts'
import type { RecordedJob } from '../../../../domain/jobs/read/recorded-jobs.ts'
import type { RunRecord } from '../../../../domain/jobs/run/record/run-record.ts'
import { type StoredJob, toJob } from './job-row.ts'

interface StoredTexts {
  readonly job: StoredJob
  readonly workflow: string
  readonly readSubmission: () => Submission | null
  /** JSON. */
  readonly run: string | null
  readonly isHidden: boolean
}

export function toRecordedJob({ job, workflow, readSubmission, run, isHidden }: StoredTexts): RecordedJob {
  let record: RunRecord | null = null
  let submitted: Submission | null = null
  return {
    job: toJob(job),
    workflow,
    // Both are parsed when they are first asked for: a list of long ones would hold up the main thread otherwise.
    get submission() {
      submitted ??= readSubmission()
      return submitted
    },
    get run() {
      if (run !== null) record ??= JSON.parse(run) as RunRecord
      return record
    },
    isHidden,
  }
}
