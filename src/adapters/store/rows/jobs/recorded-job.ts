/** A job with how it was submitted and what its run showed, as both stores give it to the domain. */
import type { Job, Submission } from '../../../../domain/jobs/job.ts'
import type { RecordedJob } from '../../../../domain/jobs/read/recorded-jobs.ts'
import type { RunRecord } from '../../../../domain/jobs/run/record/run-record.ts'

/** How a job was submitted, as it is kept beside it. */
interface SubmissionRow {
  readonly workflowId: string | null
  readonly text: string
}

export function toSubmissionRow({ workflowId, ...rest }: Submission): SubmissionRow {
  return { workflowId, text: JSON.stringify(rest) }
}

export interface StoredRecord {
  readonly job: Job
  readonly workflow: string
  readonly submission: SubmissionRow | null
  /** JSON. */
  readonly run: string | null
  readonly isHidden: boolean
}

/** Submission and run are parsed when they are first asked for: a list of long ones would hold up the main thread otherwise. */
export class ReadRecord implements RecordedJob {
  readonly job: Job
  readonly workflow: string
  readonly isHidden: boolean
  readonly #texts: Pick<StoredRecord, 'submission' | 'run'>
  #submission: Submission | null = null
  #run: RunRecord | null = null

  constructor({ job, workflow, submission, run, isHidden }: StoredRecord) {
    this.job = job
    this.workflow = workflow
    this.isHidden = isHidden
    this.#texts = { submission, run }
  }

  get submission(): Submission | null {
    const { submission } = this.#texts
    if (submission === null) return null
    const { workflowId, text } = submission
    this.#submission ??= { workflowId, ...(JSON.parse(text) as Omit<Submission, 'workflowId'>) }
    return this.#submission
  }

  get run(): RunRecord | null {
    const { run } = this.#texts
    if (run !== null) this.#run ??= JSON.parse(run) as RunRecord
    return this.#run
  }
}
