/**
 * Jobs as last read, by id, bounded. A cached job is served only while nothing newer is known: a notice of a newer version
 * drops it at once, and a read that began before the notice can neither put the old version back nor be shared with callers
 * who came after it. Because notices are best effort, a live job also ages out by time.
 */
import type { Job } from './job.ts'
import { isTerminal } from './transitions.ts'

interface Entry {
  job: Job | null
  readAtMs: number
  /** The highest version that a notice has named. */
  seenVersion: number
  pending: PendingRead | null
}

interface PendingRead {
  readonly accountId: string
  read: Promise<Job | null>
}

const NOTHING = Promise.resolve(null)

export interface JobCacheOptions {
  readonly maxEntries: number
  /** A queued job's position changes without a change of the job. */
  readonly queuedFreshMs: number
  readonly liveFreshMs: number
}

export interface JobCache {
  get(jobId: string, nowMs: number): Job | undefined
  /** Joins a read under way, unless a notice has made it too old, or starts one. */
  load(jobId: string, accountId: string, read: () => Promise<Job | null>, nowMs: number): Promise<Job | null>
  notice(jobId: string, version: number): void
  /** A job as the store has just told it, without having been asked. */
  learn(job: Job, nowMs: number): void
  size(): number
}

export function createJobCache({ maxEntries, queuedFreshMs, liveFreshMs }: JobCacheOptions): JobCache {
  // A Map keeps insertion order: re-inserting on use makes the first key the least recently used one.
  const entries = new Map<string, Entry>()

  function isFresh(job: Job, readAtMs: number, nowMs: number): boolean {
    if (job.expiresAt.getTime() <= nowMs) return false
    if (isTerminal(job.status)) return true
    return nowMs - readAtMs < (job.status === 'queued' ? queuedFreshMs : liveFreshMs)
  }

  function entryOf(jobId: string): Entry {
    const known = entries.get(jobId)
    if (known !== undefined) return known
    const entry: Entry = { job: null, readAtMs: 0, seenVersion: 0, pending: null }
    entries.set(jobId, entry)
    if (entries.size > maxEntries) {
      const [oldest] = entries.keys()
      if (oldest !== undefined) entries.delete(oldest)
    }
    return entry
  }

  function keep(jobId: string, entry: Entry, job: Job | null, readAtMs: number): void {
    if (job === null) {
      if (entry.pending === null && entries.get(jobId) === entry) entries.delete(jobId)
      return
    }
    if (job.version < entry.seenVersion || (entry.job !== null && job.version < entry.job.version)) return
    entry.job = job
    entry.readAtMs = readAtMs
  }

  return {
    get(jobId, nowMs) {
      const entry = entries.get(jobId)
      if (entry === undefined || entry.job === null || !isFresh(entry.job, entry.readAtMs, nowMs)) return undefined
      entries.delete(jobId)
      entries.set(jobId, entry)
      return entry.job
    },
    load(jobId, accountId, read, nowMs) {
      const entry = entryOf(jobId)
      if (entry.pending !== null && entry.pending.accountId === accountId) return entry.pending.read
      const pending: PendingRead = { accountId, read: NOTHING }
      entry.pending = pending
      pending.read = readInto()
      return pending.read

      async function readInto(): Promise<Job | null> {
        try {
          const job = await read()
          if (entry.pending === pending) entry.pending = null
          keep(jobId, entry, job, nowMs)
          return job
        } catch (error) {
          if (entry.pending === pending) entry.pending = null
          keep(jobId, entry, null, nowMs)
          throw error
        }
      }
    },
    notice(jobId, version) {
      const entry = entries.get(jobId)
      if (entry === undefined || version <= entry.seenVersion) return
      entry.seenVersion = version
      entry.pending = null
      if (entry.job !== null && entry.job.version < version) entry.job = null
    },
    learn: (job, nowMs) => keep(job.id, entryOf(job.id), job, nowMs),
    size: () => entries.size,
  }
}
