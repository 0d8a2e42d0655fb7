/**
 * Jobs together with how they were submitted and what their runs showed: the queue as it stands, and the history of what has
 * run. A job that never ran is not part of the history, and one that was removed from it is still a job.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import type { Job, Submission } from '../job.ts'
import { keepFileNames } from '../outputs/check-outputs.ts'
import type { RunRecord } from '../run/record/run-record.ts'
import { isOfOther } from '../submit/job-labels.ts'
import { isTerminal, type JobStatus } from '../transitions.ts'

export interface RecordedJob {
  readonly job: Job
  /** The executed graph as JSON text. */
  readonly workflow: string
  /** null for a job that was submitted without one. */
  readonly submission: Submission | null
  /** null until the run has ended, and for good when it never began. */
  readonly run: RunRecord | null
  /** Its owner has removed it from the history. */
  readonly isHidden: boolean
}

export interface HistoryRange {
  readonly maxItems: number
  /** null: the newest; otherwise counted from the oldest. */
  readonly offset: number | null
}

export interface JobFilter {
  readonly statuses: readonly JobStatus[] | null
  readonly workflowId: string | null
  readonly outputType: 'image' | 'video' | 'audio' | '3d' | null
  readonly sortBy: 'created_at' | 'execution_duration'
  readonly order: 'asc' | 'desc'
  readonly limit: number
  readonly offset: number
}

interface JobSelection {
  readonly jobs: readonly RecordedJob[]
  readonly total: number
}

/** The store as run records need it. */
export interface RunRecordStore {
  findRecord(accountId: string, jobId: string, now: Date): Promise<RecordedJob | null>
  /** Held jobs by their start, then waiting ones in the order of the queue; at most `limit` of each. */
  listLive(accountId: string, limit: number): Promise<readonly RecordedJob[]>
  countLive(accountId: string): Promise<number>
  /** Ended runs in the order of their end. */
  listHistory(accountId: string, range: HistoryRange, now: Date): Promise<readonly RecordedJob[]>
  selectJobs(accountId: string, filter: JobFilter, now: Date): Promise<JobSelection>
  /** From 0 up, each once for the account over all processes: a later call gets a higher one. Some may be left out. */
  nextPromptNumber(accountId: string): Promise<number>
  /** null: everything that has ended until now. */
  hideHistory(accountId: string, jobIds: readonly string[] | null, now: Date): Promise<void>
}

export interface RunRecords {
  find(accountId: string, jobId: string): Promise<RecordedJob | null>
  live(accountId: string): Promise<readonly RecordedJob[]>
  /** Running and waiting together. */
  countLive(accountId: string): Promise<number>
  history(accountId: string, range: HistoryRange): Promise<readonly RecordedJob[]>
  /** null when the job has not ended, never ran, or was removed from the history. */
  historyOf(accountId: string, jobId: string): Promise<RecordedJob | null>
  select(accountId: string, filter: JobFilter): Promise<JobSelection>
  forget(accountId: string, jobIds: readonly string[] | null): Promise<void>
  /** Rises with every prompt of the account. */
  nextPromptNumber(accountId: string): Promise<number>
}

interface RunRecordsDeps {
  readonly store: RunRecordStore
  readonly clock: Clock
  readonly maxLive?: number
}

// Clients look for their own job in the whole queue; the store bounds the graphs that come along.
const MAX_LIVE = 10_000

export function createRunRecords({ store, clock, maxLive = MAX_LIVE }: RunRecordsDeps): RunRecords {
  async function find(accountId: string, jobId: string): Promise<RecordedJob | null> {
    const found = isUuid(jobId) ? await store.findRecord(accountId, jobId, clock.now()) : null
    return found && toToldRecord(found)
  }
  return {
    find,
    live: async (accountId) => (await store.listLive(accountId, maxLive)).map(toToldRecord),
    countLive: (accountId) => store.countLive(accountId),
    history: async (accountId, range) => (await store.listHistory(accountId, range, clock.now())).map(toToldRecord),
    async historyOf(accountId, jobId) {
      const found = await find(accountId, jobId)
      return found !== null && isHistory(found.job) && !found.isHidden ? found : null
    },
    nextPromptNumber: (accountId) => store.nextPromptNumber(accountId),
    async select(accountId, filter) {
      const { jobs, total } = await store.selectJobs(accountId, filter, clock.now())
      return { jobs: jobs.map(toToldRecord), total }
    },
    async forget(accountId, jobIds) {
      const known = jobIds?.filter(isUuid) ?? null
      if (known === null || known.length > 0) await store.hideHistory(accountId, known, clock.now())
    },
  }
}

/**
 * The history holds jobs that have run and ended. An expired job counts too, though it may never have run: a client that waits
 * for it by its id would otherwise wait for ever.
 */
function isHistory({ status, startedAt }: Job): boolean {
  return status === 'expired' || (isTerminal(status) && startedAt !== null)
}

/** Of a run of another account's endpoint: what was made, and nothing of how. */
function toToldRecord(record: RecordedJob): RecordedJob {
  const { job, run, isHidden } = record
  if (!isOfOther(job.metadata)) return record
  const { startedAtMs, endedAtMs, nodes } = run ?? { startedAtMs: 0, endedAtMs: 0, nodes: [] }
  const told = {
    ...{ startedAtMs, endedAtMs, cached: { nodeIds: [], atMs: startedAtMs }, nodes: keepFileNames(nodes, job.outputs) },
    ...{ executed: [], stoppedAt: null, failure: null },
  }
  return { job, workflow: '{}', submission: null, run: run === null ? null : told, isHidden }
}
