/**
 * Jobs in a map, with the operations that the surface calls: enough to test HTTP without a store or an engine. When a test
 * changes a job, every watcher is notified at once.
 */
import { ServiceError } from '../../../src/domain/errors.ts'
import type { Job, JobLog } from '../../../src/domain/jobs/job.ts'
import type { ListRequest } from '../../../src/domain/jobs/read/list-jobs.ts'
import type { JobWatch, JobWatcher, Preview } from '../../../src/domain/jobs/read/watch-job.ts'
import type { SubmitRequest } from '../../../src/domain/jobs/submit/submit-job.ts'

export const JOB_ID = '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'
export const ASSET_ID = '7b0f4c1e-51f3-4c55-9f43-0d1f4c1e51f3'

export function makeJob(changes: Partial<Job> = {}): Job {
  return {
    id: JOB_ID,
    pool: 'default',
    accountId: 'local',
    status: 'running',
    priority: 0,
    metadata: {},
    createdAt: new Date('2026-01-01T00:00:00.000Z'),
    startedAt: new Date('2026-01-01T00:00:01.500Z'),
    completedAt: null,
    expiresAt: new Date('2026-01-08T00:00:00.000Z'),
    queuePosition: null,
    progress: null,
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: 0,
    attempt: 1,
    version: 1,
    ...changes,
  }
}

export function makeOutput(assetId = ASSET_ID, name = 'a_00001_.png'): Job['outputs'][number] {
  return { assetId, nodeId: '9', name, type: 'image', contentType: 'image/png', sizeBytes: 12, hash: 'ab'.repeat(32) }
}

export function makeProgress(value: number): NonNullable<Job['progress']> {
  return {
    value,
    nodesDone: 1,
    nodesTotal: 3,
    currentNode: '3',
    currentNodeClass: 'KSampler',
    step: 21,
    steps: 50,
    message: 'KSampler 21/50',
  }
}

export function createMemoryJobs() {
  const jobs = new Map<string, Job>()
  const watchers = new Map<string, Set<JobWatcher>>()
  const previews = new Map<string, Preview>()
  const workflows = new Map<string, string>()
  const logs = new Map<string, JobLog>()
  const submitted: SubmitRequest[] = []
  const listed: ListRequest[] = []
  const calls = { watch: 0, find: 0, cancel: 0 }
  // For tests that want reads to go past the cache, to fail, or to wait.
  const switches = { isCached: true, fail: null as unknown, hold: null as Promise<void> | null }

  function must(accountId: string, jobId: string): Job {
    if (switches.fail !== null) throw switches.fail
    const job = jobs.get(jobId)
    if (job === undefined || job.accountId !== accountId)
      throw new ServiceError('not_found', 'there is no job with this id')
    return job
  }

  function put(job: Job): Job {
    jobs.set(job.id, job)
    for (const watcher of [...(watchers.get(job.id) ?? [])]) watcher.onSnapshot(job)
    return job
  }

  return {
    calls,
    submitted,
    listed,
    workflows,
    logs,
    switches,
    put,
    /** The present job with changes and the next version. */
    change(changes: Partial<Job>, jobId = JOB_ID): Job {
      const job = jobs.get(jobId)!
      return put({ ...job, ...changes, version: job.version + 1 })
    },
    show(preview: Preview, jobId = JOB_ID): void {
      previews.set(jobId, preview)
      for (const watcher of [...(watchers.get(jobId) ?? [])]) watcher.onPreview(preview)
    },
    remove(jobId = JOB_ID): void {
      jobs.delete(jobId)
      for (const watcher of [...(watchers.get(jobId) ?? [])]) watcher.onGone()
    },
    watcherCount: (jobId = JOB_ID) => watchers.get(jobId)?.size ?? 0,
    operations: {
      async submit(request: SubmitRequest): Promise<Job> {
        if (switches.fail !== null) throw switches.fail
        submitted.push(request)
        const { metadata, priority } = request
        return put(makeJob({ status: 'queued', startedAt: null, queuePosition: 3, metadata, priority }))
      },
      reader: {
        peek(accountId: string, jobId: string): Job | undefined {
          const job = switches.isCached ? jobs.get(jobId) : undefined
          return job?.accountId === accountId ? job : undefined
        },
        async find(accountId: string, jobId: string): Promise<Job> {
          calls.find++
          await switches.hold
          return must(accountId, jobId)
        },
        async workflow(accountId: string, jobId: string): Promise<string> {
          must(accountId, jobId)
          return workflows.get(jobId) ?? '{}'
        },
        async log(accountId: string, jobId: string): Promise<JobLog | null> {
          must(accountId, jobId)
          return logs.get(jobId) ?? null
        },
      },
      async list(_accountId: string, request: ListRequest) {
        listed.push(request)
        const newestFirst = [...jobs.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
        const rest = newestFirst.filter((job) => request.cursor === null || job.id < request.cursor.id)
        const page = rest.slice(0, request.limit)
        const last = page.at(-1)
        const next = rest.length > page.length && last !== undefined ? { createdAt: last.createdAt, id: last.id } : null
        return { jobs: page, next }
      },
      async cancel(accountId: string, jobId: string): Promise<Job> {
        calls.cancel++
        return put({ ...must(accountId, jobId), status: 'canceling' })
      },
      async watchJob(accountId: string, jobId: string, watcher: JobWatcher): Promise<JobWatch> {
        calls.watch++
        const job = must(accountId, jobId)
        const set = watchers.get(jobId) ?? new Set()
        watchers.set(jobId, set.add(watcher))
        return { job, preview: previews.get(jobId) ?? null, stop: () => void set.delete(watcher) }
      },
    },
  }
}

export type MemoryJobs = ReturnType<typeof createMemoryJobs>
