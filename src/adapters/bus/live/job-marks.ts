/** The last event of each job that came over a link, by the sender's numbers. Only for running jobs that a topic asks for. */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { accountKey, jobIdOf, jobKey } from '../subscriptions.ts'
import { isOfRun, type JobNotice } from './told-notice.ts'

interface JobRef {
  readonly jobId: string
  readonly accountId: string
}

const MAX_JOBS = 10_000

export class JobMarks {
  readonly #marks = new BoundedMap<string, { readonly job: JobRef; readonly seq: number }>(MAX_JOBS)

  /** False: no topic asks for it, or it came before. */
  advance(notice: JobNotice, seq: number, topics: ReadonlySet<string>): boolean {
    const { jobId, accountId } = notice.notice
    if (!topics.has(jobKey(jobId)) && !topics.has(accountKey(accountId))) return false
    if (seq <= (this.#marks.get(jobId)?.seq ?? 0)) return false
    // Events of other jobs are never repeated, and their marks would take the room of those that run.
    if (isOfRun(notice)) this.#marks.set(jobId, { job: { jobId, accountId }, seq })
    return true
  }

  /** A topic has ended: jobs that no other one asks for start from the beginning when they are asked for again. Returns their ids. */
  forget(topic: string, topics: ReadonlySet<string>): string[] {
    const jobId = jobIdOf(topic)
    const marks = jobId === null ? [...this.#marks.values()] : [this.#marks.get(jobId)]
    return marks.flatMap((mark) => {
      if (mark === undefined) return []
      const [ofJob, ofAccount] = [jobKey(mark.job.jobId), accountKey(mark.job.accountId)]
      const isAbout = topic === ofJob || topic === ofAccount
      if (!isAbout || topics.has(ofJob) || topics.has(ofAccount)) return []
      this.#marks.delete(mark.job.jobId)
      return [mark.job.jobId]
    })
  }
}
