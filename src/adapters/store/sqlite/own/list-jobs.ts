/**
 * A page of an account's jobs, newest first by (created at, id). Without labels the page is merged from one ordered index
 * range per status; with labels it walks the range of the first label and drops what does not match. A walk looks at a
 * bounded number of entries and then says where to go on, so that a filter that hardly matches delays no other read.
 */
import { ANSWERED_OUTPUTS, type JobLists, type JobsPart, type PartQuery } from '../../search/job-pages.ts'
import type { PageKey } from '../../search/merge-walks.ts'
import { all, defineStore, get, read, type Steps } from '../../statements/operation.ts'
import { query, sqliteOnly, type Words } from '../../statements/statement.ts'
import { addPositions, type FoundJob, foundJob, IS_RETAINED, outputsOf } from '../../stores/jobs/find-job.ts'
import { jobRow } from '../../tables/jobs.ts'
import { integer, type RowOf, shape, text } from '../../tables/table.ts'

const entry = shape({ createdAt: integer(), id: text() })
type Entry = RowOf<typeof entry>

const BEFORE = '(created_at, id) < (:createdAt, :beforeId)'
const ENTRIES = query(
  'jobs.listEntries',
  entry,
  sqliteOnly(`SELECT created_at, id FROM job WHERE account_id = :accountId AND status = :status AND ${BEFORE} AND ${IS_RETAINED}
    ORDER BY created_at DESC, id DESC LIMIT :limit`),
)
// Deployments have an index of their own; the common pool is not listed by itself.
const POOL_ENTRIES = query(
  'jobs.listPoolEntries',
  entry,
  sqliteOnly(`SELECT created_at, id FROM job INDEXED BY job_pool_listing
    WHERE pool <> 'default' AND account_id = :accountId AND pool = :pool AND status = :status AND ${BEFORE} AND ${IS_RETAINED}
    ORDER BY created_at DESC, id DESC LIMIT :limit`),
)
const FOUND = (words: Words) =>
  `SELECT ${jobRow.columns}, ${outputsOf(words, 'job')} AS outputs FROM job WHERE id = :id`
const FIND = query('jobs.findListed', foundJob, sqliteOnly(FOUND))

function newestFirst(left: Entry, right: Entry): number {
  if (left.createdAt !== right.createdAt) return right.createdAt - left.createdAt
  return left.id < right.id ? 1 : -1
}

function* readPlain({ accountId, pool, statuses, limit, before, now }: PartQuery): Steps<JobsPart> {
  const [createdAt, beforeId] = before
  const entries: Entry[] = []
  for (const status of statuses) {
    const range = { accountId, status, createdAt, beforeId, now, limit }
    entries.push(...(yield* pool === null ? all(ENTRIES, range) : all(POOL_ENTRIES, { ...range, pool })))
  }
  const page = createPage(limit)
  for (const { createdAt, id } of entries.sort(newestFirst).slice(0, limit)) {
    if (page.add(yield* get(FIND, { id }))) return yield* page.toPart([createdAt, id])
  }
  return yield* page.toPart(null)
}

const LABELLED_ENTRIES = query(
  'jobs.listLabelledEntries',
  entry,
  sqliteOnly(`SELECT created_at, job_id AS id FROM job_label
    WHERE account_id = :accountId AND key = :key AND value = :value AND (created_at, job_id) < (:createdAt, :beforeId)
    ORDER BY created_at DESC, job_id DESC LIMIT :walked`),
)
const BATCH_ENTRIES = query(
  'jobs.listBatchEntries',
  entry,
  sqliteOnly(`SELECT created_at, item.value AS id FROM job_batch CROSS JOIN json_each(jobs) AS item
    WHERE job_batch.id = :batchId AND account_id = :accountId AND item.value IS NOT NULL
      AND (created_at, item.value) < (:createdAt, :beforeId)
    ORDER BY item.value DESC LIMIT :walked`),
)
const HAS_LABEL = query(
  'jobs.hasLabel',
  shape({ id: text() }),
  sqliteOnly(`SELECT job_id AS id FROM job_label
    WHERE account_id = :accountId AND key = :key AND value = :value AND created_at = :createdAt AND job_id = :id`),
)
const FIND_FITTING = query(
  'jobs.findFitting',
  foundJob,
  sqliteOnly(
    (words) =>
      `${FOUND(words)} AND ${words.isIn('status', ':statuses')} AND ${IS_RETAINED} AND (:pool IS NULL OR pool = :pool)`,
  ),
)

/** Of a batch, or of a label: those jobs that have all other labels and fit the rest of the query. */
function* readWalked(part: PartQuery, walked: number): Steps<JobsPart> {
  const { accountId, batchId, pool, statuses, limit, now } = part
  const [createdAt, beforeId] = part.before
  const from = { accountId, createdAt, beforeId, walked }
  const [[key, value] = ['', ''], ...others] = part.labels
  const entries = yield* batchId === null
    ? all(LABELLED_ENTRIES, { ...from, key, value })
    : all(BATCH_ENTRIES, { ...from, batchId })
  const labels = batchId === null ? others : part.labels
  const page = createPage(limit)
  for (const { createdAt, id } of entries) {
    let isLabelled = true
    for (const [key, value] of labels) {
      isLabelled &&= (yield* get(HAS_LABEL, { accountId, key, value, createdAt, id })) !== undefined
    }
    if (!isLabelled) continue
    const isFull = page.add(yield* get(FIND_FITTING, { id, statuses, now, pool }))
    if (page.isComplete()) return yield* page.toPart(null)
    if (isFull) return yield* page.toPart([createdAt, id])
  }
  const last = entries.length < walked ? undefined : entries.at(-1)
  return yield* page.toPart(last === undefined ? null : [last.createdAt, last.id])
}

function createPage(limit: number) {
  const rows: FoundJob[] = []
  let outputs = 0
  return {
    /** True: it lists so many outputs that the rest is left to the next part. */
    add(row: FoundJob | undefined): boolean {
      if (row !== undefined) rows.push(row)
      outputs += row?.outputs?.length ?? 0
      return outputs >= ANSWERED_OUTPUTS
    },
    isComplete: () => rows.length === limit,
    *toPart(resumeBefore: PageKey | null): Steps<JobsPart> {
      return { jobs: yield* addPositions(rows), resumeBefore }
    },
  }
}

export const jobLists = defineStore<JobLists>('jobLists', {
  readPart: read(function* (part, walked) {
    const isPlain = part.batchId === null && part.labels.length === 0
    return yield* isPlain ? readPlain(part) : readWalked(part, walked)
  }),
})
