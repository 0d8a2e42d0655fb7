/**
 * Reads one job, from the cache while that is current and otherwise from the store; no engine is asked. An id that is not this
 * account's gets exactly the answer of one that does not exist.
 *
 * Where other processes write to the store, a notice of what they wrote may be late or lost. There a job that can still change is
 * served from memory only when the store has the same version of it at this moment: whoever has seen a job end in one process does
 * not see it alive in another.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { ServiceError } from '../../errors.ts'
import type { EventBus, Unsubscribe } from '../../events/event-bus.ts'
import type { Job, JobLog } from '../job.ts'
import type { JobStore } from '../job-store.ts'
import { isOfOther } from '../submit/job-labels.ts'
import { isTerminal } from '../transitions.ts'

export interface JobReader {
  /** Synchronous, from the cache only and only when that needs no question; never a job past its retention. */
  peek(accountId: string, jobId: string): Job | undefined
  /** Throws `not_found`. */
  find(accountId: string, jobId: string): Promise<Job>
  /** Like `find`, but not served from anything older than `version`. */
  findSince(accountId: string, jobId: string, version: number): Promise<Job>
  /** The executed graph as JSON text. */
  workflow(accountId: string, jobId: string): Promise<string>
  /** null while the job runs, and for good when nothing was captured. */
  log(accountId: string, jobId: string): Promise<JobLog | null>
  /** Takes over a job that the store has just returned, so that the next reader need not ask the store. */
  learn(job: Job): void
  /** Drops jobs past their retention from the cache, and those that were not asked for in a while. Returns how many. */
  sweep(): number
  stop: Unsubscribe
}

interface ReaderDeps {
  readonly store: Pick<JobStore, 'find' | 'findLiveVersion' | 'findWorkflow' | 'findLog'>
  readonly bus: Pick<EventBus<never>, 'onChanged' | 'onGap'>
  readonly clock: Clock
  readonly maxEntries?: number
  readonly maxBytes?: number
  readonly queuedFreshMs?: number
  readonly liveFreshMs?: number
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024
const UNUSED_MS = 2 * 60_000

export function createJobReader(deps: ReaderDeps): JobReader {
  const { store, bus, clock, maxEntries = 10_000, queuedFreshMs = 500, liveFreshMs = 2000 } = deps
  const { maxBytes = DEFAULT_MAX_BYTES } = deps
  const cache = createJobCache({ maxEntries, maxBytes, queuedFreshMs, liveFreshMs, unusedMs: UNUSED_MS })
  const stops = [bus.onChanged((notice) => cache.notice(notice.jobId, notice.version)), bus.onGap(() => cache.doubt())]

  function findCached(accountId: string, jobId: string): Job | undefined {
    const job = cache.get(jobId, clock.now().getTime())
    return job !== undefined && job.accountId === accountId ? job : undefined
  }

  /** No other process can have written a newer version. */
  const isCertain = (job: Job) => store.findLiveVersion === undefined || isTerminal(job.status)

  function peek(accountId: string, jobId: string): Job | undefined {
    const job = findCached(accountId, jobId)
    return job !== undefined && isCertain(job) ? job : undefined
  }

  async function find(accountId: string, jobId: string): Promise<Job> {
    const cached = findCached(accountId, jobId)
    if (cached !== undefined && (isCertain(cached) || (await isCurrent(cached)))) return cached
    if (!isUuid(jobId)) throw noSuchJob()
    const now = clock.now()
    const read = () => store.find(accountId, jobId, now)
    const job = await (store.findLiveVersion === undefined
      ? cache.load(jobId, accountId, read, now.getTime())
      : readAnew(read, now))
    if (job === null) throw noSuchJob()
    return job
  }

  async function isCurrent({ id, version }: Job): Promise<boolean> {
    return (await store.findLiveVersion?.(id)) === version
  }

  /** A read under way may have begun before a change that this caller knows of: it is not shared. */
  async function readAnew(read: () => Promise<Job | null>, now: Date): Promise<Job | null> {
    const job = await read()
    if (job !== null) cache.learn(job, now.getTime())
    return job
  }

  return {
    peek,
    find,
    async findSince(accountId, jobId, version) {
      // The caller may have got the notice of this version before the cache did.
      cache.notice(jobId, version)
      const cached = findCached(accountId, jobId)
      return cached !== undefined && cached.version >= version && version > 0 ? cached : find(accountId, jobId)
    },
    async workflow(accountId, jobId) {
      const { metadata } = await find(accountId, jobId)
      if (isOfOther(metadata)) throw notShown()
      const text = await store.findWorkflow(accountId, jobId, clock.now())
      if (text === null) throw noSuchJob()
      return text
    },
    async log(accountId, jobId) {
      const job = await find(accountId, jobId)
      return isTerminal(job.status) ? store.findLog(accountId, jobId, clock.now()) : null
    },
    learn: (job) => cache.learn(job, clock.now().getTime()),
    sweep: () => cache.sweep(clock.now().getTime()),
    stop() {
      for (const stop of stops) stop()
    },
  }
}

/** The one refusal for an id that is unknown, somebody else's or past its retention. */
export function noSuchJob(): ServiceError {
  return new ServiceError('not_found', 'there is no job with this id')
}

function notShown(): ServiceError {
  return new ServiceError(
    'forbidden',
    'the job runs an endpoint of another account, whose workflow its owner keeps; its inputs are shown with the run of the endpoint',
  )
}

interface Entry {
  job: Job | null
  /** About what the job occupies. */
  bytes: number
  readAtMs: number
  usedAtMs: number
  /** The highest version that a notice has named. */
  seenVersion: number
  isDropped: boolean
  pending: PendingRead | null
}

interface PendingRead {
  readonly accountId: string
  read: Promise<Job | null>
}

const NOTHING = Promise.resolve(null)

interface JobCacheOptions {
  readonly maxEntries: number
  readonly maxBytes: number
  /** A queued job's position changes without a change of the job. */
  readonly queuedFreshMs: number
  readonly liveFreshMs: number
  /** A job that nobody has asked for in so long leaves with the next sweep: a service at rest holds no jobs of a busy hour. */
  readonly unusedMs: number
}

interface JobCache {
  get(jobId: string, nowMs: number): Job | undefined
  /** Joins a read under way, unless a notice has made it too old, or starts one. */
  load(jobId: string, accountId: string, read: () => Promise<Job | null>, nowMs: number): Promise<Job | null>
  notice(jobId: string, version: number): void
  /** Notices may have been lost: jobs that can still change are read again. */
  doubt(): void
  /** Takes over a job that the store has just returned from a write. */
  learn(job: Job, nowMs: number): void
  /** Drops jobs past their retention, which nobody can read any more, and jobs that were not used for long. Returns how many. */
  sweep(nowMs: number): number
  size(): number
}

// Estimates of what a job without outputs, and one output, occupy in memory.
const JOB_BYTES = 1500
const OUTPUT_BYTES = 700

function bytesOf({ outputs, metadata, error }: Job): number {
  let letters = (error?.message.length ?? 0) + (error?.traceback?.length ?? 0)
  for (const [name, value] of Object.entries(metadata)) letters += name.length + value.length
  return JOB_BYTES + outputs.length * OUTPUT_BYTES + letters * 2
}

const isExpired = (job: Job | null, nowMs: number) => job !== null && job.expiresAt.getTime() <= nowMs

/**
 * Jobs as last read, by id, bounded in number and in bytes. A cached job is served only while nothing newer is known: a notice of
 * a newer version drops it at once, and a read that began before the notice can neither put the old version back nor be shared
 * with callers who came after it. Because notices are best effort, a live job also expires from the cache after a while.
 */
export function createJobCache(options: JobCacheOptions): JobCache {
  const { queuedFreshMs, liveFreshMs, unusedMs } = options
  const { entries, put, drop, entryOf, keep } = createEntries(options)

  function isFresh(job: Job, readAtMs: number, nowMs: number): boolean {
    if (isExpired(job, nowMs)) return false
    if (isTerminal(job.status)) return true
    return nowMs - readAtMs < (job.status === 'queued' ? queuedFreshMs : liveFreshMs)
  }

  return {
    get(jobId, nowMs) {
      const entry = entries.get(jobId)
      if (entry === undefined || entry.job === null || !isFresh(entry.job, entry.readAtMs, nowMs)) return undefined
      entries.delete(jobId)
      entries.set(jobId, entry)
      entry.usedAtMs = nowMs
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
      if (entry.job !== null && entry.job.version < version) put(entry, null)
    },
    doubt() {
      for (const [jobId, entry] of entries) {
        if (entry.job === null || !isTerminal(entry.job.status)) drop(jobId, entry)
      }
    },
    learn: (job, nowMs) => keep(job.id, entryOf(job.id), job, nowMs),
    sweep(nowMs) {
      const before = entries.size
      for (const [jobId, entry] of entries) {
        const isUnused = entry.job === null || nowMs - entry.usedAtMs >= unusedMs
        if (entry.pending === null && (isUnused || isExpired(entry.job, nowMs))) drop(jobId, entry)
      }
      return before - entries.size
    },
    size: () => entries.size,
  }
}

function createEntries({ maxEntries, maxBytes }: Pick<JobCacheOptions, 'maxEntries' | 'maxBytes'>) {
  // A Map keeps insertion order: re-inserting on use makes the first key the least recently used one.
  const entries = new Map<string, Entry>()
  let usedBytes = 0

  function put(entry: Entry, job: Job | null): void {
    const bytes = job === null ? 0 : bytesOf(job)
    usedBytes += bytes - entry.bytes
    entry.job = job
    entry.bytes = bytes
  }

  function drop(jobId: string, entry: Entry): void {
    if (!entries.delete(jobId)) return
    // A read under way may still put a job into this entry, which is no longer reachable: it must not count.
    entry.isDropped = true
    usedBytes -= entry.bytes
  }

  function makeRoom(): void {
    for (const [jobId, entry] of entries) {
      if (entries.size <= maxEntries && usedBytes <= maxBytes) return
      drop(jobId, entry)
    }
  }

  function entryOf(jobId: string): Entry {
    const known = entries.get(jobId)
    if (known !== undefined) return known
    const entry: Entry = {
      job: null,
      bytes: 0,
      readAtMs: 0,
      usedAtMs: 0,
      seenVersion: 0,
      isDropped: false,
      pending: null,
    }
    entries.set(jobId, entry)
    makeRoom()
    return entry
  }

  function keep(jobId: string, entry: Entry, job: Job | null, readAtMs: number): void {
    if (entry.isDropped) return
    if (job === null) {
      if (entry.pending === null) drop(jobId, entry)
      return
    }
    if (job.version < entry.seenVersion || (entry.job !== null && job.version < entry.job.version)) return
    put(entry, job)
    entry.readAtMs = readAtMs
    entry.usedAtMs = readAtMs
    makeRoom()
  }

  return { entries, put, drop, entryOf, keep }
}
