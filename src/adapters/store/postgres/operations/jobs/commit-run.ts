/**
 * What workers write. The lease id is the fencing token: no row with it and a live status means that the lease is lost, and nothing
 * at all is written. Outputs become asset records in the same transaction, so a job never shows one without bytes that are
 * referenced. The writes of all runs of a node travel together: progress alone in one relaxed statement, everything else in one
 * durable transaction, and one that cannot be written fails alone.
 */

import { isStoreAway } from '../../../../../domain/errors.ts'
import type { CommitOutcome, Lease, RunChange } from '../../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type JobRow, type StoredJob, toJob } from '../../../rows/jobs/job-row.ts'
import { createToCommit, type RunCommit } from '../../../rows/jobs/run-commit.ts'
import type { Connections } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { toText } from '../../database/texts.ts'
import { addRecords } from '../assets/blob-references.ts'
import { closeEnded, moveToDone } from './end-job.ts'
import { addOutputs, type NewOutput, toNewOutput } from './job-outputs.ts'
import { DONE_COLUMNS, findOutputsOf } from './job-row.ts'
import { keepResults } from './reuse-result.ts'

type LogFields = readonly [
  text: string,
  truncated: boolean,
  capturedAt: number,
  complete: boolean,
  marks: string | null,
]

type Commit = RunCommit<NewOutput, LogFields>

const toCommit = createToCommit<NewOutput, LogFields>({
  toOutputRow: toNewOutput,
  toLogRow: ({ text, truncated, capturedAt, complete, marks = null }) => [
    toText(text),
    truncated,
    capturedAt.getTime(),
    complete,
    toText(marks),
  ],
})

// A batch stays short, so that the accounts that it locks are free again soon.
const MAX_COMMITS = 64
const MAX_BYTES = 4_194_304
const MAX_BATCHES = 2

type CommitRun = (lease: Lease, change: RunChange, now: Date) => Promise<CommitOutcome>

export function createCommitRun({ durable, relaxed }: Pick<Connections, 'durable' | 'relaxed'>): CommitRun {
  const nameOf = ({ jobId }: Commit) => jobId
  const commitProgress = createGather<Commit, CommitOutcome>({
    run: (commits) => writeProgress(relaxed, commits),
    onBatch: relaxed.noteBatch,
    maxItems: MAX_COMMITS,
    maxRunning: 1,
    nameOf,
  })
  // A repeated write adds no output twice, and a repeated end is recognised by its lease.
  const writeTogether = (commits: readonly Commit[]) =>
    durable.transaction((tx) => writeCommits(tx, commits), { isRepeatable: true })
  const commitDurably = createGather<Commit, () => CommitOutcome>({
    run: (commits) => eachAnswered(commits, writeTogether),
    onBatch: durable.noteBatch,
    maxItems: MAX_COMMITS,
    maxWeight: MAX_BYTES,
    weigh: ({ log, finish }) => (log?.[0].length ?? 0) + (finish?.record?.length ?? 0),
    maxRunning: MAX_BATCHES,
    nameOf,
  })
  return async (lease, change, now) => {
    const commit = toCommit(lease, change, now)
    const isProgressOnly = commit.outputs.length === 0 && commit.log === null && commit.finish === null
    if (isProgressOnly) return commitProgress(commit)
    const answer = await commitDurably(commit)
    return answer()
  }
}

/** What fails for one of them is written again one by one, so that only the one at fault is refused. */
async function eachAnswered(
  commits: readonly Commit[],
  write: (commits: readonly Commit[]) => Promise<CommitOutcome[]>,
): Promise<(() => CommitOutcome)[]> {
  try {
    return (await write(commits)).map((outcome) => () => outcome)
  } catch (error) {
    if (isStoreAway(error) || commits.length === 1) throw error
  }
  const settled = []
  for (const commit of commits) settled.push(...(await Promise.allSettled([write([commit])])))
  return settled.map((result) => () => {
    if (result.status === 'rejected') throw result.reason
    return result.value[0] ?? LOST
  })
}

const LOST: CommitOutcome = { outcome: 'lost' }

const PROGRESS = statement<[jobId: string, version: number, status: JobStatus]>(
  'runs.progress',
  `WITH change AS MATERIALIZED (
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[]) AS c(job_id, lease_id, progress, reused)),
   held AS MATERIALIZED (
     SELECT job.id FROM change JOIN job ON job.id = change.job_id
     WHERE job.lease_id = change.lease_id AND job.status IN ('running', 'canceling')
     ORDER BY job.id FOR NO KEY UPDATE OF job)
   UPDATE job SET progress = coalesce(change.progress, job.progress),
     outputs_reused = coalesce(change.reused, job.outputs_reused), version = job.version + 1
   FROM held JOIN change ON change.job_id = held.id WHERE job.id = held.id RETURNING job.id, job.version, job.status`,
)

async function writeProgress(db: Queryable, commits: readonly Commit[]): Promise<CommitOutcome[]> {
  const written = await db.all(PROGRESS, [
    ...toFence(commits),
    commits.map(({ progress }) => progress),
    commits.map(({ outputsReused }) => outputsReused),
  ])
  const byId = new Map(written.map(([jobId, version, status]) => [jobId, { version, status }]))
  return commits.map(({ jobId }) => {
    const now = byId.get(jobId)
    return now === undefined ? LOST : { outcome: 'committed', ...now }
  })
}

function toFence(commits: readonly Commit[]): [string[], string[]] {
  return [commits.map(({ jobId }) => jobId), commits.map(({ leaseId }) => leaseId)]
}

type HeldRow = readonly [jobId: string, accountId: string, status: JobStatus, expiresAt: number, outputCount: number]

const LOCK_HELD = statement<HeldRow>(
  'runs.lock_held',
  `SELECT job.id, job.account_id, job.status, job.expires_at, job.output_count
   FROM unnest($1::uuid[], $2::text[]) AS lease(job_id, lease_id) JOIN job ON job.id = lease.job_id
   WHERE job.lease_id = lease.lease_id AND job.status IN ('running', 'canceling')
   ORDER BY job.id FOR NO KEY UPDATE OF job`,
)

/** A commit whose lease stands, with what it adds. */
interface Standing {
  readonly commit: Commit
  readonly accountId: string
  readonly status: JobStatus
  readonly expiresAt: number
  readonly outputsBefore: number
}

async function writeCommits(tx: Queryable, commits: readonly Commit[]): Promise<CommitOutcome[]> {
  const held = new Map((await tx.all(LOCK_HELD, toFence(commits))).map((row) => [row[0], row]))
  const standing = commits.flatMap((commit) => toStanding(commit, held.get(commit.jobId)) ?? [])
  const over = commits.filter(({ jobId, finish }) => finish !== null && !held.has(jobId))
  const [added, ended] = await Promise.all([
    standing.length === 0 ? new Map<string, CommitOutcome>() : writeStanding(tx, standing),
    over.length === 0 ? new Map<string, CommitOutcome>() : findEnded(tx, over),
  ])
  return commits.map(({ jobId }) => added.get(jobId) ?? ended.get(jobId) ?? LOST)
}

function toStanding(commit: Commit, row: HeldRow | undefined): Standing | null {
  if (row === undefined) return null
  const [, accountId, status, expiresAt, outputsBefore] = row
  if (commit.finish !== null && !commit.finish.from.includes(status)) return null
  return { commit, accountId, status, expiresAt, outputsBefore }
}

/** Locks come in the order that all transactions keep: jobs (done), counters, records and storage, credit. */
async function writeStanding(tx: Queryable, standing: readonly Standing[]): Promise<Map<string, CommitOutcome>> {
  const { counts, records } = await addOutputs(
    tx,
    standing.map(({ commit, accountId, expiresAt, outputsBefore }) => ({
      ...{ jobId: commit.jobId, accountId, expiresAt, outputCount: outputsBefore },
      ...{ outputs: commit.outputs, now: commit.now },
    })),
  )
  const [, running, moved] = await Promise.all([
    writeLogs(tx, standing),
    updateRunning(tx, standing, counts),
    moveToDone(
      tx,
      standing.flatMap(({ commit }) => toEnd(commit, counts)),
    ),
    addRecords(tx, records),
  ])
  const rows = moved.map(({ row }) => row)
  const [outputs] = await Promise.all([
    findOutputsOf(tx, rows),
    closeEnded(tx, moved),
    keepResults(
      tx,
      standing.flatMap((each) => toKept(each, rows)),
    ),
  ])
  const outcomes = new Map(running)
  for (const row of rows) outcomes.set(row[COLUMN.id], toEndOutcome([row, outputs.get(row[COLUMN.id]) ?? null, null]))
  return outcomes
}

function toEnd({ jobId, finish, progress, outputsReused }: Commit, counts: ReadonlyMap<string, number>) {
  if (finish === null) return []
  const { status: to, at, error, record: run } = finish
  return [{ id: jobId, to, at, error, run, progress, outputsReused, outputCount: counts.get(jobId) ?? null }]
}

function toKept({ commit: { jobId, finish }, accountId, expiresAt }: Standing, rows: readonly JobRow[]) {
  if (finish === null || finish.resultKey === null) return []
  const startedAt = rows.find((row) => row[COLUMN.id] === jobId)?.[COLUMN.startedAt] ?? finish.at
  return [{ accountId, key: finish.resultKey, jobId, runMs: finish.at - startedAt, expiresAt }]
}

function toEndOutcome(ended: StoredJob): CommitOutcome {
  const job = toJob(ended)
  return { outcome: 'committed', version: job.version, status: job.status, job }
}

const UPDATE = statement<[jobId: string, version: number]>(
  'runs.update',
  `UPDATE job SET progress = coalesce(change.progress, job.progress), output_count = coalesce(change.outputs, job.output_count),
     outputs_reused = coalesce(change.reused, job.outputs_reused), version = job.version + 1
   FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[]) AS change(job_id, progress, reused, outputs)
   WHERE job.id = change.job_id RETURNING job.id, job.version`,
)

async function updateRunning(
  tx: Queryable,
  standing: readonly Standing[],
  counts: ReadonlyMap<string, number>,
): Promise<Map<string, CommitOutcome>> {
  const running = standing.filter(({ commit }) => commit.finish === null)
  if (running.length === 0) return new Map()
  const updated = await tx.all(UPDATE, [
    running.map(({ commit }) => commit.jobId),
    running.map(({ commit }) => commit.progress),
    running.map(({ commit }) => commit.outputsReused),
    running.map(({ commit }) => counts.get(commit.jobId) ?? null),
  ])
  const versions = new Map(updated)
  return new Map(
    running.map(({ commit: { jobId }, status }) => [
      jobId,
      { outcome: 'committed', version: versions.get(jobId) ?? 0, status },
    ]),
  )
}

const ADD_LOGS = statement(
  'runs.add_logs',
  `INSERT INTO job_log (job_id, expires_at, text, truncated, captured_at, complete, marks)
   SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::boolean[], $7::text[])
   ON CONFLICT (job_id, expires_at) DO UPDATE SET text = excluded.text, truncated = excluded.truncated,
     captured_at = excluded.captured_at, complete = excluded.complete, marks = excluded.marks`,
)

async function writeLogs(tx: Queryable, standing: readonly Standing[]): Promise<void> {
  const logs = standing.flatMap(({ commit: { jobId, log }, expiresAt }) =>
    log === null ? [] : [[jobId, expiresAt, ...log] as const],
  )
  if (logs.length === 0) return
  await tx.run(
    ADD_LOGS,
    [0, 1, 2, 3, 4, 5, 6].map((column) => logs.map((row) => row[column])),
  )
}

const FIND_ENDED = statement<JobRow>(
  'runs.find_ended',
  `SELECT done.* FROM unnest($1::uuid[], $2::text[], $3::text[]) AS asked(job_id, lease_id, ended_as)
   CROSS JOIN LATERAL (
     SELECT ${DONE_COLUMNS} FROM job_done WHERE id = asked.job_id AND lease_id = asked.lease_id
       AND status = asked.ended_as OFFSET 0) AS done`,
)

/** The same end was written before, and only its answer was lost. A lease makes one end, whenever it is said to have been. */
async function findEnded(tx: Queryable, over: readonly Commit[]): Promise<Map<string, CommitOutcome>> {
  const rows = await tx.all(FIND_ENDED, [...toFence(over), over.map(({ finish }) => finish?.status)])
  const outputs = await findOutputsOf(tx, rows)
  return new Map(
    rows.map((row) => [row[COLUMN.id], toEndOutcome([row, outputs.get(row[COLUMN.id]) ?? null, null])] as const),
  )
}
