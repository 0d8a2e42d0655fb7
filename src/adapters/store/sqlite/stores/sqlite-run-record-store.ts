/** Run records on SQLite, as the main thread sees them. */

import type { RecordedJob, RunRecordStore } from '../../../../domain/jobs/read/recorded-jobs.ts'
import { JOB_STATUSES } from '../../../../domain/jobs/transitions.ts'
import { toRecordedJob } from '../../rows/jobs/recorded-job.ts'
import { accountSteps } from '../../stores/account-store.ts'
import type { StoredRecord } from '../operations/jobs/read-run-records.ts'
import { toSubmission } from '../operations/jobs/write-run-records.ts'
import { openShared } from '../shared-stores.ts'
import { createPromptNumbers } from './prompt-number-cache.ts'
import type { StoreChannels } from './store-channels.ts'

function toRecord([job, workflow, submission, run, isHidden]: StoredRecord): RecordedJob {
  const readSubmission = () => (submission === null ? null : toSubmission(submission))
  return toRecordedJob({ job, workflow, readSubmission, run, isHidden: isHidden === 1 })
}

const VISIBLE_STATUSES = JOB_STATUSES.filter((status) => status !== 'expired')

export function createRunRecordStore({ write, read }: StoreChannels): RunRecordStore {
  const { findUse } = openShared(accountSteps, { write, read })
  return {
    async findRecord(accountId, jobId, now) {
      const stored = await read.call('findRecord', { accountId, jobId, now: now.getTime() })
      return stored === null ? null : toRecord(stored)
    },
    async listLive(accountId, limit) {
      const stored = await read.call('listLive', { accountId, limit })
      return stored.map(toRecord)
    },
    async countLive(accountId) {
      const use = await findUse(accountId)
      return use === null ? 0 : use.queued + use.running
    },
    async listHistory(accountId, { maxItems, offset }, now) {
      const stored = await read.call('listHistory', { accountId, maxItems, offset, now: now.getTime() })
      return stored.map(toRecord)
    },
    async selectJobs(accountId, { statuses, ...filter }, now) {
      const { records, total } = await read.call('selectJobs', {
        ...filter,
        accountId,
        statuses: statuses ?? VISIBLE_STATUSES,
        now: now.getTime(),
      })
      return { jobs: records.map(toRecord), total }
    },
    nextPromptNumber: createPromptNumbers(write),
    hideHistory: (accountId, jobIds, now) => write.call('hideHistory', { accountId, jobIds, now: now.getTime() }),
  }
}
