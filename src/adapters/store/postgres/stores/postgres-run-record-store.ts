/** Run records on Postgres. */
import type { Submission } from '../../../../domain/jobs/job.ts'
import type { RecordedJob, RunRecordStore } from '../../../../domain/jobs/read/recorded-jobs.ts'
import type { RunRecord } from '../../../../domain/jobs/run/run-record.ts'
import { JOB_STATUSES } from '../../../../domain/jobs/transitions.ts'
import { findUse } from '../operations/accounts/account-counters.ts'
import { nextPromptNumber } from '../operations/accounts/shared-counters.ts'
import { toJob } from '../operations/jobs/job-row.ts'
import {
  findRecord,
  listHistory,
  listLive,
  type StoredRecord,
  selectJobs,
} from '../operations/jobs/read-run-records.ts'
import { hideHistory, toSubmission } from '../operations/jobs/write-run-records.ts'
import type { StoreParts } from './store-parts.ts'

function toRecordedJob({ job, workflow, submission, run, isHidden }: StoredRecord): RecordedJob {
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
    isHidden,
  }
}

const VISIBLE_STATUSES = JOB_STATUSES.filter((status) => status !== 'expired')

export function createRunRecordStore({ durable, relaxed, read }: StoreParts): RunRecordStore {
  return {
    async findRecord(accountId, jobId, now) {
      const stored = await findRecord(read, { accountId, jobId, now: now.getTime() })
      return stored === null ? null : toRecordedJob(stored)
    },
    async listLive(accountId, limit) {
      return (await listLive(read, accountId, limit)).map(toRecordedJob)
    },
    async countLive(accountId) {
      const use = await findUse(read, accountId)
      return use === null ? 0 : use.queued + use.running
    },
    async listHistory(accountId, range, now) {
      return (await listHistory(read, { accountId, ...range, now: now.getTime() })).map(toRecordedJob)
    },
    async selectJobs(accountId, { statuses, ...filter }, now) {
      const asked = { ...filter, accountId, statuses: statuses ?? VISIBLE_STATUSES, now: now.getTime() }
      const { records, total } = await selectJobs(read, asked)
      return { jobs: records.map(toRecordedJob), total }
    },
    nextPromptNumber: (accountId) => nextPromptNumber(relaxed, accountId),
    hideHistory: (accountId, jobIds, now) => hideHistory(durable, { accountId, jobIds, now: now.getTime() }),
  }
}
