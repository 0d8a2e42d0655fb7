/**
 * Jobs. SQLite has one row for each, and its parts under the same number (`seq`); Postgres has those that are not over in `job`, and the
 * others, with their parts, by their expiry, so that they can be dropped by the day.
 */
import type { BatchLimit, RefusedItem } from '../../../domain/jobs/batches/batch.ts'
import type { Tallies } from '../../../domain/jobs/limits/run-limits.ts'
import type { GpuUse } from '../../../domain/jobs/run/gpu-use.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { bytes, flag, integer, json, moment, named, nullable, only, stays, table, text, uuid } from './table.ts'

const HELD = 'whoever held it has stopped: the job waits again'
const INNER_KEY = 'the key by which rows of a job belong together in this store; the id of the job is carried'

/** What a job has in every table of jobs. */
const shared = {
  id: uuid(),
  seq: integer(),
  accountId: text(),
  pool: text(),
  status: text<JobStatus>(),
  priority: integer('integer'),
  attempt: integer('integer'),
  version: integer('integer'),
  createdAt: moment(),
  startedAt: nullable(moment()),
  expiresAt: moment(),
  leaseId: stays(HELD, nullable(text())),
  engineId: nullable(text()),
  outputCount: integer('integer'),
  outputsReused: flag(),
  outputsReplaced: integer('integer'),
  metadata: nullable(json<Readonly<Record<string, string>>>()),
  progress: nullable(text()),
  recipe: nullable(text()),
  attempts: nullable(text()),
  title: nullable(text()),
  notBefore: nullable(moment()),
  queueUntil: nullable(moment()),
}

/** What it has from its end on. */
const ended = { error: nullable(text()), code: nullable(text()), reusedFrom: nullable(uuid()) }

export const job = table('job', ['seq'], {
  ...shared,
  leaseUntil: stays(HELD, nullable(moment())),
  workerId: stays(HELD, nullable(text())),
  runId: stays(HELD, nullable(text())),
  adoptionsOverAt: stays(HELD, nullable(moment())),
  needsExtraData: integer('smallint'),
  inputCount: integer('integer'),
  needs: text(),
  engineLosses: integer('integer'),
  priceSecond: nullable(integer()),
  priceMinimum: nullable(integer()),
  hook: nullable(text()),
  completedAt: only('sqlite', nullable(moment())),
  foreseenMs: stays('an estimate for a run that is over or begins anew', nullable(integer())),
  outputTypes: only('sqlite', integer()),
  error: only('sqlite', ended.error),
  code: only('sqlite', ended.code),
  reusedFrom: only('sqlite', ended.reusedFrom),
})

export const jobDone = table(
  'job_done',
  ['id', 'expiresAt'],
  {
    ...shared,
    ...ended,
    completedAt: moment(),
    run: nullable(text()),
    isHidden: flag('boolean'),
    outputTypes: nullable(integer('smallint')),
  },
  { only: 'postgres' },
)

const seq = only('sqlite', stays(INNER_KEY, integer()))
const jobId = only('postgres', uuid())
const expiresAt = only('postgres', moment())

export const jobText = table(
  'job_text',
  ['jobId', 'expiresAt'],
  {
    jobId,
    expiresAt,
    workflow: text(),
    workflowId: nullable(text()),
    submission: nullable(text()),
    origin: nullable(text()),
  },
  { only: 'postgres' },
)
export const jobWorkflow = table(
  'job_workflow',
  ['seq'],
  { seq, text: text(), origin: nullable(text()) },
  { only: 'sqlite' },
)
export const jobSubmission = table(
  'job_submission',
  ['seq'],
  { seq, workflowId: nullable(text()), text: text() },
  { only: 'sqlite' },
)
export const jobRun = table('job_run', ['seq'], { seq, text: text() }, { only: 'sqlite' })
export const jobHidden = table('job_hidden', ['seq'], { seq: integer() }, { only: 'sqlite' })
export const jobNotes = table('job_notes', ['seq', 'jobId'], { seq, jobId, text: text() })
export const jobSecret = table('job_secret', ['seq', 'jobId'], { seq, jobId, sealed: bytes() })

export const jobLog = table('job_log', ['seq', 'jobId', 'expiresAt'], {
  ...{ seq, jobId, expiresAt, text: text(), truncated: flag('boolean'), capturedAt: moment() },
  ...{ complete: flag('boolean'), marks: nullable(text()) },
})

export const jobInput = table('job_input', ['seq', 'jobId', 'position'], {
  ...{
    seq,
    jobId,
    position: integer('integer'),
    name: text(),
    hash: text(),
    sizeBytes: integer(),
    contentType: text(),
  },
})

const WITH_ASSET = 'the same as in the row of the asset'

/** Files that are listed with a job, in its order. In Postgres they are rows of `output` with a position. */
export const jobOutput = table(
  'job_output',
  ['seq', 'position'],
  {
    ...{ seq: integer(), position: integer('integer'), assetId: text(), nodeId: text(), name: text(), type: text() },
    contentType: stays(WITH_ASSET, text()),
    sizeBytes: stays(WITH_ASSET, integer()),
    hash: stays(WITH_ASSET, text()),
  },
  { only: 'sqlite' },
)

export const jobLabel = table('job_label', ['accountId', 'key', 'value', 'createdAt', 'jobId'], {
  ...{ accountId: text(), key: text(), value: text(), createdAt: moment(), jobId: uuid(), expiresAt },
})

export const jobRecipe = table('job_recipe', ['accountId', 'recipe'], {
  ...{ accountId: text(), recipe: text(), title: text(), terms: text(), expiresAt: moment() },
})

export const jobResult = table('job_result', ['accountId', 'key'], {
  ...{ accountId: text(), key: text(), jobId: uuid(), runMs: integer(), expiresAt: moment() },
})

export const jobBatch = table('job_batch', ['id'], {
  id: uuid(),
  accountId: text(),
  pool: text(),
  createdAt: moment(),
  expiresAt: moment(),
  isWhole: flag(),
  digest: text(),
  jobIds: named('jobs', json<readonly (string | null)[]>()),
  refused: json<readonly RefusedItem[]>(),
  limitedBy: nullable(text<BatchLimit>()),
})

/** What was counted for the bounds of a scope. */
export const runScope = table('run_scope', ['accountId', 'scope'], {
  ...{ accountId: text(), scope: text(), tallies: json<Tallies>() },
  ...{ open: integer('integer'), lookAt: integer('integer') },
})

/** A job that counts there, until it is known to have ended. */
export const runTicket = table('run_ticket', ['accountId', 'scope', 'jobId'], {
  ...{ accountId: text(), scope: text(), jobId: uuid(), countedAt: moment(), micros: integer(), isWithdrawn: flag() },
})

/** What an attempt took of a server: the facts that reports are made of. */
export const gpuUse = table('gpu_use', ['seq'], {
  ...{ seq: integer(), jobId: uuid(), accountId: text(), pool: text(), engineId: text(), attempt: integer('integer') },
  ...{ endedAt: moment(), ms: integer() },
  classes: json<GpuUse['classes']>(),
  weights: json<GpuUse['weights']>(),
})

export const outputNumber = table('output_number', ['accountId', 'folder', 'prefix'], {
  ...{ accountId: text(), folder: text(), prefix: text(), last: integer() },
})

export const jobPartition = table(
  'job_partition',
  ['lower'],
  { lower: integer(), upper: integer() },
  { only: 'postgres', staysFor: 'made where rows are written' },
)

export const jobIdChosen = table(
  'job_id_chosen',
  ['id'],
  { id: uuid(), expiresAt: moment() },
  { only: 'postgres', staysFor: 'keeps two submits apart; an id that a job has is found with the job' },
)
