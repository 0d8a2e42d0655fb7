/**
 * What running jobs have told so far, for whoever comes late or comes back: all that happened, of each node its newest step, and
 * the newest preview. Bounded; of a job that told more than fits the oldest goes first. A job that has ended is kept for a while,
 * because somebody may be about to come back for its end.
 */
import { accountKey, jobKey } from '../subscriptions.ts'
import type { ToldNotice } from './told-notice.ts'

interface LogBounds {
  readonly maxJobs?: number
  readonly maxJobEntries?: number
  readonly maxJobBytes?: number
  /** Of all jobs together: pictures that are results may be large. */
  readonly maxBytes?: number
  readonly endedMs?: number
}

interface JobEntries {
  /** In the order in which they were told. */
  readonly entries: Map<string, ToldNotice>
  readonly accountId: string
  bytes: number
  endedAtMs: number
}

export class LiveLog {
  readonly #bounds: Required<LogBounds>
  readonly #jobs = new Map<string, JobEntries>()
  #bytes = 0

  constructor(bounds: LogBounds = {}) {
    this.#bounds = {
      maxJobs: bounds.maxJobs ?? 256,
      maxJobEntries: bounds.maxJobEntries ?? 1000,
      maxJobBytes: bounds.maxJobBytes ?? 16 * 1024 * 1024,
      maxBytes: bounds.maxBytes ?? 64 * 1024 * 1024,
      endedMs: bounds.endedMs ?? 60_000,
    }
  }

  add(told: ToldNotice): void {
    const { maxJobs, maxBytes } = this.#bounds
    // The next attempt begins anew; what the last one told has no meaning for it.
    if (told.isStart) this.#forget(told.jobId)
    const job = this.#jobs.get(told.jobId) ?? this.#begin(told)
    const key = told.key ?? `${told.seq}`
    this.#drop(job, key)
    job.entries.set(key, told)
    job.bytes += told.bytes
    this.#bytes += told.bytes
    if (told.isEnd) job.endedAtMs = told.atMs
    this.#bound(job)
    this.#forgetEnded(told.atMs)
    while (this.#jobs.size > maxJobs || (this.#bytes > maxBytes && this.#jobs.size > 1)) {
      const [oldest] = this.#jobs.keys()
      if (oldest === undefined) return
      this.#forget(oldest)
    }
  }

  /** By job, each in the order in which it was told. */
  *of(topic: string): IterableIterator<ToldNotice> {
    for (const [jobId, { accountId, entries }] of this.#jobs) {
      if (topic === jobKey(jobId) || topic === accountKey(accountId)) yield* entries.values()
    }
  }

  /** Drops the jobs of a topic that no other topic is about. */
  forget(topic: string, isWatched: (topic: string) => boolean): void {
    for (const [jobId, { accountId }] of [...this.#jobs]) {
      const [ofJob, ofAccount] = [jobKey(jobId), accountKey(accountId)]
      if ((topic === ofJob || topic === ofAccount) && !isWatched(ofJob) && !isWatched(ofAccount)) this.#forget(jobId)
    }
  }

  #begin({ jobId, accountId }: ToldNotice): JobEntries {
    const job: JobEntries = { entries: new Map(), accountId, bytes: 0, endedAtMs: Number.POSITIVE_INFINITY }
    this.#jobs.set(jobId, job)
    return job
  }

  #bound(job: JobEntries): void {
    const { maxJobEntries, maxJobBytes } = this.#bounds
    while (job.entries.size > maxJobEntries || (job.bytes > maxJobBytes && job.entries.size > 1)) {
      const [oldest] = job.entries.keys()
      if (oldest === undefined) return
      this.#drop(job, oldest)
    }
  }

  #drop(job: JobEntries, key: string): void {
    const bytes = job.entries.get(key)?.bytes ?? 0
    if (!job.entries.delete(key)) return
    job.bytes -= bytes
    this.#bytes -= bytes
  }

  #forget(jobId: string): void {
    this.#bytes -= this.#jobs.get(jobId)?.bytes ?? 0
    this.#jobs.delete(jobId)
  }

  /** Jobs end about in the order in which they began, so that looking at the oldest few is enough. */
  #forgetEnded(nowMs: number): void {
    for (const [jobId, { endedAtMs }] of this.#jobs) {
      if (endedAtMs + this.#bounds.endedMs > nowMs) return
      this.#forget(jobId)
    }
  }
}
