/**
 * A page of an account's jobs, newest first by (created at, id). Without labels the page is merged from one ordered index
 * range per status; with labels it walks the range of the first label and drops what does not match. A walk looks at a
 * bounded number of entries and then says where to go on, so that a filter that hardly matches delays no other read.
 */

import type { DatabaseSync } from 'node:sqlite'
import type { JobRow, StoredJob } from '../../../rows/jobs/job-row.ts'
import { ANSWERED_OUTPUTS, type JobsPart, type PartQuery, WALKED_ENTRIES } from '../../../search/job-pages.ts'
import type { PageKey } from '../../../search/merge-walks.ts'
import { prepareRows } from '../statement.ts'
import { IS_RETAINED } from './find-job.ts'
import { type CompleteJob, JOB_COLUMNS } from './job-row.ts'

/** Newer than every job: ids are lower-case hex. */
export const NEWEST_KEY: PageKey = [Number.MAX_SAFE_INTEGER, 'z']

interface ListDeps {
  readonly completeJob: CompleteJob
}

type Entry = readonly [createdAt: number, jobId: string, seq: number]

function isFull(jobs: readonly StoredJob[]): boolean {
  return jobs.reduce((sum, [, outputs]) => sum + (outputs?.length ?? 0), 0) >= ANSWERED_OUTPUTS
}

function newestFirst([leftAt, leftId]: Entry, [rightAt, rightId]: Entry): number {
  if (leftAt !== rightAt) return rightAt - leftAt
  return leftId < rightId ? 1 : -1
}

export function prepareListJobs(
  database: DatabaseSync,
  { completeJob }: ListDeps,
): (input: PartQuery) => JobsPart<StoredJob> {
  const selectEntries = prepareRows<Entry>(
    database,
    `SELECT created_at, id, seq FROM job
     WHERE account_id = ?1 AND status = ?2 AND (created_at, id) < (?4, ?5) AND ${IS_RETAINED}
     ORDER BY created_at DESC, id DESC LIMIT ?6`,
  )
  // Deployments have an index of their own; the common pool is not listed by itself.
  const selectPoolEntries = prepareRows<Entry>(
    database,
    `SELECT created_at, id, seq FROM job INDEXED BY job_pool_listing
     WHERE pool <> 'default' AND account_id = ?1 AND pool = ?7 AND status = ?2 AND (created_at, id) < (?4, ?5)
       AND ${IS_RETAINED}
     ORDER BY created_at DESC, id DESC LIMIT ?6`,
  )
  const selectRow = prepareRows<JobRow>(database, `SELECT ${JOB_COLUMNS} FROM job WHERE seq = ?`)
  return ({ accountId, pool, statuses, limit, before, now }) => {
    const entries = statuses.flatMap((status) =>
      pool === null
        ? selectEntries.all(accountId, status, now, ...before, limit)
        : selectPoolEntries.all(accountId, status, now, ...before, limit, pool),
    )
    const page = entries.sort(newestFirst).slice(0, limit)
    const jobs: StoredJob[] = []
    for (const [createdAt, jobId, seq] of page) {
      const row = selectRow.get(seq)
      if (row !== undefined) jobs.push(completeJob(row, jobs.at(-1)))
      if (isFull(jobs)) return { jobs, resumeBefore: [createdAt, jobId] }
    }
    return { jobs, resumeBefore: null }
  }
}

export function prepareListLabelledJobs(
  database: DatabaseSync,
  deps: ListDeps,
): (input: PartQuery) => JobsPart<StoredJob> {
  const selectEntries = prepareRows<PageKey>(
    database,
    `SELECT created_at, job_id FROM job_label
     WHERE account_id = ? AND key = ? AND value = ? AND (created_at, job_id) < (?, ?)
     ORDER BY created_at DESC, job_id DESC LIMIT ${WALKED_ENTRIES}`,
  )
  const pick = preparePick(database, deps)
  return (input) => {
    const [first, ...others] = input.labels
    return pick(selectEntries.all(input.accountId, ...first, ...input.before), others, input)
  }
}

/** Of a batch, with labels or without. */
export function prepareListBatchJobs(
  database: DatabaseSync,
  deps: ListDeps,
): (input: PartQuery) => JobsPart<StoredJob> {
  const selectEntries = prepareRows<PageKey>(
    database,
    `SELECT created_at, item.value FROM job_batch CROSS JOIN json_each(jobs) AS item
     WHERE job_batch.id = ? AND account_id = ? AND item.value IS NOT NULL AND (created_at, item.value) < (?, ?)
     ORDER BY item.value DESC LIMIT ${WALKED_ENTRIES}`,
  )
  const pick = preparePick(database, deps)
  return (input) => pick(selectEntries.all(input.batchId, input.accountId, ...input.before), input.labels, input)
}

/** Of entries in the order of a page, those jobs that have all these labels and fit the rest of the query. */
function preparePick(database: DatabaseSync, { completeJob }: ListDeps) {
  const hasLabel = prepareRows<[number]>(
    database,
    'SELECT 1 FROM job_label WHERE account_id = ? AND key = ? AND value = ? AND created_at = ? AND job_id = ?',
  )
  const selectRow = prepareRows<JobRow>(
    database,
    `SELECT ${JOB_COLUMNS} FROM job WHERE id = ?1 AND status IN (SELECT value FROM json_each(?2)) AND ${IS_RETAINED}
       AND (?4 IS NULL OR pool = ?4)`,
  )
  return (entries: readonly PageKey[], labels: PartQuery['labels'], input: PartQuery): JobsPart<StoredJob> => {
    const { accountId, pool, statuses, limit, now } = input
    const statusList = JSON.stringify(statuses)
    const jobs: StoredJob[] = []
    for (const [createdAt, jobId] of entries) {
      if (!labels.every((label) => hasLabel.get(accountId, ...label, createdAt, jobId) !== undefined)) continue
      const row = selectRow.get(jobId, statusList, now, pool)
      if (row !== undefined) jobs.push(completeJob(row, jobs.at(-1)))
      if (jobs.length === limit) return { jobs, resumeBefore: null }
      if (isFull(jobs)) return { jobs, resumeBefore: [createdAt, jobId] }
    }
    return { jobs, resumeBefore: entries.length < WALKED_ENTRIES ? null : entries[entries.length - 1] }
  }
}
