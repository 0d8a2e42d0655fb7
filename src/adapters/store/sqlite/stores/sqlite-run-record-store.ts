/** Run records on SQLite, as the main thread sees them. */

import type { Submission } from '../../../../domain/jobs/job.ts'
import type { RecordedJob, RunRecordStore } from '../../../../domain/jobs/read/recorded-jobs.ts'
import type { RunRecord } from '../../../../domain/jobs/run/run-record.ts'
import { JOB_STATUSES } from '../../../../domain/jobs/transitions.ts'
import { toJob } from '../operations/jobs/job-row.ts'
import type { StoredRecord } from '../operations/jobs/read-run-records.ts'
import { toSubmission } from '../operations/jobs/write-run-records.ts'
import { createPromptNumbers } from './prompt-number-cache.ts'
import type { StoreChannels } from './store-channels.ts'

function toRecordedJob([job, workflow, submission, run, isHidden]: StoredRecord): RecordedJob {
  let record: RunRecord | null = null
  let submitted: Submission | null = null
  return {
    job: toJob(job),
    workflow,
    // Both are parsed when they are first asked for: a list of long ones would hold up the main thread otherwise.
    get submission() {
      if (submission !== null) submitted ??= toSubmission(submission)
      return submitted
    },
    get run() {
      if (run !== null) record ??= JSON.parse(run) as RunRecord
      return record
    },
    isHidden: isHidden === 1,
  }
}

const VISIBLE_STATUSES = JOB_STATUSES.filter((status) => status !== 'expired')

export function createRunRecordStore({ write, read }: StoreChannels): RunRecordStore {
  return {
    async findRecord(accountId, jobId, now) {
      const stored = await read.call('findRecord', { accountId, jobId, now: now.getTime() })
      return stored === null ? null : toRecordedJob(stored)
    },
    async listLive(accountId, limit) {
      const stored = await read.call('listLive', { accountId, limit })
      return stored.map(toRecordedJob)
    },
    async countLive(accountId) {
      const use = await read.call('findUse', accountId)
      return use === null ? 0 : use.queued + use.running
    },
    async listHistory(accountId, { maxItems, offset }, now) {
      const stored = await read.call('listHistory', { accountId, maxItems, offset, now: now.getTime() })
      return stored.map(toRecordedJob)
    },
    async selectJobs(accountId, { statuses, ...filter }, now) {
      const { records, total } = await read.call('selectJobs', {
        ...filter,
        accountId,
        statuses: statuses ?? VISIBLE_STATUSES,
        now: now.getTime(),
      })
      return { jobs: records.map(toRecordedJob), total }
    },
    nextPromptNumber: createPromptNumbers(write),
    hideHistory: (accountId, jobIds, now) => write.call('hideHistory', { accountId, jobIds, now: now.getTime() }),
  }
}
