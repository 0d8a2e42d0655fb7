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
import { isTerminal } from '../transitions.ts'
import { createJobCache } from './job-cache.ts'

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
      const text = isUuid(jobId) ? await store.findWorkflow(accountId, jobId, clock.now()) : null
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
