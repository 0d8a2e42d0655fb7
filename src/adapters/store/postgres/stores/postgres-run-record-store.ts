/** Run records on Postgres. */

import type { RecordedJob, RunRecordStore } from '../../../../domain/jobs/read/recorded-jobs.ts'
import { JOB_STATUSES } from '../../../../domain/jobs/transitions.ts'
import { toRecordedJob } from '../../rows/jobs/recorded-job.ts'
import { accountSteps } from '../../stores/account-store.ts'
import { nextPromptNumber } from '../operations/accounts/shared-counters.ts'
import {
  findRecord,
  listHistory,
  listLive,
  type StoredRecord,
  selectJobs,
} from '../operations/jobs/read-run-records.ts'
import { hideHistory, toSubmission } from '../operations/jobs/write-run-records.ts'
import { openShared } from '../shared-stores.ts'
import type { StoreParts } from './store-parts.ts'

function toRecord({ submission, ...stored }: StoredRecord): RecordedJob {
  return toRecordedJob({ ...stored, readSubmission: () => (submission === null ? null : toSubmission(submission)) })
}

const VISIBLE_STATUSES = JOB_STATUSES.filter((status) => status !== 'expired')

export function createRunRecordStore(parts: StoreParts): RunRecordStore {
  const { durable, relaxed, read } = parts
  const { findUse } = openShared(accountSteps, parts)
  return {
    async findRecord(accountId, jobId, now) {
      const stored = await findRecord(read, { accountId, jobId, now: now.getTime() })
      return stored === null ? null : toRecord(stored)
    },
    async listLive(accountId, limit) {
      return (await listLive(read, accountId, limit)).map(toRecord)
    },
    async countLive(accountId) {
      const use = await findUse(accountId)
      return use === null ? 0 : use.queued + use.running
    },
    async listHistory(accountId, range, now) {
      return (await listHistory(read, { accountId, ...range, now: now.getTime() })).map(toRecord)
    },
    async selectJobs(accountId, { statuses, ...filter }, now) {
      const asked = { ...filter, accountId, statuses: statuses ?? VISIBLE_STATUSES, now: now.getTime() }
      const { records, total } = await selectJobs(read, asked)
      return { jobs: records.map(toRecord), total }
    },
    nextPromptNumber: (accountId) => nextPromptNumber(relaxed, accountId),
    hideHistory: (accountId, jobIds, now) => hideHistory(durable, { accountId, jobIds, now: now.getTime() }),
  }
}
