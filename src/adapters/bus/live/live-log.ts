/**
 * The events of running jobs so far, for readers that come late or reconnect: everything that happened, but of each node only its
 * newest step, and only the newest preview. Bounded: if a job has more events than fit, the oldest are dropped. A job that has ended
 * is kept for a while, because a reader may be about to reconnect for its end; if there are too many jobs, ended ones are dropped
 * first. Waiting jobs are not kept, so that they take no room from running ones.
 */
import { accountKey, jobIdOf, jobKey } from '../local.ts'
import { isOfRun, type ToldNotice } from './told-notice.ts'

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
  readonly #running = new Map<string, JobEntries>()
  /** In the order in which they ended. */
  readonly #ended = new Map<string, JobEntries>()
  #bytes = 0

  constructor(bounds: LogBounds = {}) {
    this.#bounds = {
      maxJobs: bounds.maxJobs ?? 2048,
      maxJobEntries: bounds.maxJobEntries ?? 1000,
      maxJobBytes: bounds.maxJobBytes ?? 16 * 1024 * 1024,
      maxBytes: bounds.maxBytes ?? 64 * 1024 * 1024,
      endedMs: bounds.endedMs ?? 60_000,
    }
  }

  add(told: ToldNotice): void {
    const { jobId } = told
    // The next attempt starts from the beginning; events of the last one have no meaning for it.
    if (told.isStart || (told.isTaking && this.#ended.has(jobId))) this.#forget(jobId)
    const job = this.#running.get(jobId) ?? this.#ended.get(jobId) ?? this.#begin(told)
    if (job === null) return
    const key = told.key ?? `${told.seq}`
    this.#drop(job, key)
    job.entries.set(key, told)
    job.bytes += told.bytes
    this.#bytes += told.bytes
    this.#bound(job)
    if (told.isEnd) this.#end(jobId, job, told.atMs)
    this.#forgetEnded(told.atMs)
    this.#makeRoom()
  }

  /** By job, each in the order in which it was told. */
  *of(topic: string): IterableIterator<ToldNotice> {
    const jobId = jobIdOf(topic)
    for (const jobs of [this.#ended, this.#running]) {
      if (jobId !== null) yield* jobs.get(jobId)?.entries.values() ?? []
      else for (const job of jobs.values()) if (topic === accountKey(job.accountId)) yield* job.entries.values()
    }
  }

  /** Drops the jobs of a topic that no other topic is about. */
  forget(topic: string, isWatched: (topic: string) => boolean): void {
    for (const [jobId, { accountId }] of [...this.#ended, ...this.#running]) {
      const [ofJob, ofAccount] = [jobKey(jobId), accountKey(accountId)]
      if ((topic === ofJob || topic === ofAccount) && !isWatched(ofJob) && !isWatched(ofAccount)) this.#forget(jobId)
    }
  }

  /** null: it does not run. */
  #begin({ jobId, accountId, isEnd, notice }: ToldNotice): JobEntries | null {
    if (!isOfRun(notice) || (isEnd && notice.kind === 'changed')) return null
    const job: JobEntries = { entries: new Map(), accountId, bytes: 0, endedAtMs: Number.POSITIVE_INFINITY }
    this.#running.set(jobId, job)
    return job
  }

  #end(jobId: string, job: JobEntries, atMs: number): void {
    job.endedAtMs = atMs
    this.#running.delete(jobId)
    this.#ended.delete(jobId)
    this.#ended.set(jobId, job)
  }

  #makeRoom(): void {
    const { maxJobs, maxBytes } = this.#bounds
    const count = () => this.#ended.size + this.#running.size
    while (count() > maxJobs || (this.#bytes > maxBytes && count() > 1)) {
      const [oldest] = this.#ended.size > 0 ? this.#ended.keys() : this.#running.keys()
      if (oldest === undefined) return
      this.#forget(oldest)
    }
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
    this.#bytes -= (this.#running.get(jobId) ?? this.#ended.get(jobId))?.bytes ?? 0
    this.#running.delete(jobId)
    this.#ended.delete(jobId)
  }

  #forgetEnded(nowMs: number): void {
    for (const [jobId, { endedAtMs }] of this.#ended) {
      if (endedAtMs + this.#bounds.endedMs > nowMs) return
      this.#forget(jobId)
    }
  }
}
