/** Run records: what each database reads in its own way (`RecordReads`), the numbers of prompts, and what leaves the history. */
import type { JobFilter, RunRecordStore } from '../../../domain/jobs/read/recorded-jobs.ts'
import { JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { ReadRecord, type StoredRecord } from '../rows/jobs/recorded-job.ts'
import { defineStore, durable, get, type OpenStore, relaxed, run } from '../statements/operation.ts'
import { command, query } from '../statements/statement.ts'
import { integer, shape } from '../tables/table.ts'
import { accountSteps } from './account-store.ts'

export interface RecordFilter extends Omit<JobFilter, 'statuses'> {
  readonly statuses: readonly JobStatus[]
}

export interface RecordReads {
  find(accountId: string, jobId: string, now: Date): Promise<StoredRecord | null>
  listLive(accountId: string, limit: number): Promise<StoredRecord[]>
  listHistory(
    accountId: string,
    range: Parameters<RunRecordStore['listHistory']>[1],
    now: Date,
  ): Promise<StoredRecord[]>
  select(
    accountId: string,
    filter: RecordFilter,
    now: Date,
  ): Promise<{ readonly records: readonly StoredRecord[]; readonly total: number }>
}

const CLEAR = command(
  'history.clear',
  ({ greatest }) => `INSERT INTO history_clear AS known (account_id, at) VALUES (:accountId, :now)
    ON CONFLICT (account_id) DO UPDATE SET at = ${greatest('known.at', 'excluded.at')}`,
)
const IS_ENDED = `account_id = :accountId AND status IN ('succeeded', 'failed', 'canceled')`
const HIDE = command('history.hide', (words) =>
  words.either(
    `INSERT OR IGNORE INTO job_hidden (seq) SELECT seq FROM job WHERE ${words.isIn('id', ':jobIds')} AND ${IS_ENDED}`,
    `UPDATE job_done SET is_hidden = true WHERE id = ANY(:jobIds::uuid[]) AND ${IS_ENDED} AND NOT is_hidden`,
  ),
)
const NEXT_NUMBER = query(
  'prompts.nextNumber',
  shape({ number: integer() }),
  `INSERT INTO prompt_number AS known (account_id, next) VALUES (:accountId, 1)
   ON CONFLICT (account_id) DO UPDATE SET next = known.next + 1 RETURNING next - 1 AS number`,
)

type RecordWrites = Pick<RunRecordStore, 'hideHistory' | 'nextPromptNumber'>

export const recordWrites = defineStore<RecordWrites>('recordWrites', {
  hideHistory: durable(
    function* (accountId, jobIds, now) {
      yield* jobIds === null ? run(CLEAR, { accountId, now }) : run(HIDE, { accountId, jobIds })
    },
    { isEssential: true, isRepeatable: true },
  ),
  nextPromptNumber: relaxed(function* (accountId) {
    return (yield* get(NEXT_NUMBER, { accountId }))?.number ?? 0
  }),
})

const VISIBLE_STATUSES = JOB_STATUSES.filter((status) => status !== 'expired')

export function createRunRecordStore(open: OpenStore, reads: RecordReads): RunRecordStore {
  const { findUse } = open(accountSteps)
  const toRecord = (stored: StoredRecord) => new ReadRecord(stored)
  return {
    async findRecord(accountId, jobId, now) {
      const stored = await reads.find(accountId, jobId, now)
      return stored === null ? null : toRecord(stored)
    },
    listLive: async (accountId, limit) => (await reads.listLive(accountId, limit)).map(toRecord),
    async countLive(accountId) {
      const use = await findUse(accountId)
      return use === null ? 0 : use.queued + use.running
    },
    listHistory: async (accountId, range, now) => (await reads.listHistory(accountId, range, now)).map(toRecord),
    async selectJobs(accountId, { statuses, ...filter }, now) {
      const asked = { ...filter, statuses: statuses ?? VISIBLE_STATUSES }
      const { records, total } = await reads.select(accountId, asked, now)
      return { jobs: records.map(toRecord), total }
    },
    ...open(recordWrites),
  }
}
