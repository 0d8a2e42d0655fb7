/** A job with how it was submitted and what its run showed, as both stores give it to the domain. */
import type { Job, Submission } from '../../../../domain/jobs/job.ts'
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

export function toRecordedJob(texts: StoredTexts): RecordedJob {
  return new ReadRecord(texts)
}

/** Submission and run are parsed when they are first asked for: a list of long ones would hold up the main thread otherwise. */
class ReadRecord implements RecordedJob {
  readonly job: Job
  readonly workflow: string
  readonly isHidden: boolean
  readonly #texts: Pick<StoredTexts, 'readSubmission' | 'run'>
  #submission: Submission | null = null
  #run: RunRecord | null = null

  constructor({ job, workflow, readSubmission, run, isHidden }: StoredTexts) {
    this.job = toJob(job)
    this.workflow = workflow
    this.isHidden = isHidden
    this.#texts = { readSubmission, run }
  }

  get submission(): Submission | null {
    this.#submission ??= this.#texts.readSubmission()
    return this.#submission
  }

  get run(): RunRecord | null {
    const { run } = this.#texts
    if (run !== null) this.#run ??= JSON.parse(run) as RunRecord
    return this.#run
  }
}
