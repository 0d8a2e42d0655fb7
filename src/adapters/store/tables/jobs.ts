/**
 * Jobs and what belongs to them. In Postgres a job is a row of `job` while it lives and of `job_done` afterwards, and what it wrote lies
 * beside its expiry; in SQLite it is a row of `job` for all its life, and what belongs to it has its number.
 */
import type { JobError, OutputType, Progress } from '../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { flag, integer, json, moment, nullable, shape, text, uuid } from './table.ts'

/** What every row of a job begins with. */
const head = {
  seq: integer(),
  id: uuid(),
  accountId: text(),
  pool: text(),
  status: text<JobStatus>(),
  priority: integer('integer'),
  createdAt: moment(),
  startedAt: nullable(moment()),
  completedAt: nullable(moment()),
  expiresAt: moment(),
  attempt: integer('integer'),
  version: integer(),
  outputCount: integer('integer'),
}

/** A job as it is read; its outputs and its position in the queue come from elsewhere. */
export const jobRow = shape({
  ...head,
  outputsReused: flag(),
  outputsReplaced: integer('integer'),
  metadata: nullable(json<Readonly<Record<string, string>>>()),
  progress: nullable(json<Progress>()),
  error: nullable(json<JobError>()),
  reusedFrom: nullable(uuid()),
  notBefore: nullable(moment()),
  queueUntil: nullable(moment()),
})

/** An output that a job lists. */
export const outputRow = shape({
  assetId: text(),
  nodeId: text(),
  name: text(),
  type: text<OutputType>(),
  contentType: text(),
  sizeBytes: integer(),
  hash: text(),
})
