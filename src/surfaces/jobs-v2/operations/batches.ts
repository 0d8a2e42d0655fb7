/** Many workflows in one request, and what can be asked of them together. 201 means that all jobs which it names are durably recorded and queued. */
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Turns, Work } from '../../../../lib/waiting/turns.ts'
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { type BatchLimit, type JobState, MAX_BATCH, type StoredBatch } from '../../../domain/jobs/batches/batch.ts'
import type { Batches } from '../../../domain/jobs/batches/batches.ts'
import {
  applyChange,
  BatchRefusedError,
  type Change,
  multiply,
  type ReadItem,
  type SubmitBatch,
} from '../../../domain/jobs/batches/submit-batch.ts'
import { insufficientCredits, queueFull } from '../../../domain/jobs/submit/submit-refusals.ts'
import { isTerminal, JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { mustBeObject, parseLosslessBody, readBodyBytes } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJobsArchive } from '../../kit/jobs/outputs-archive.ts'
import { idOf, sendJson, untilGone } from '../../kit/request.ts'
import { toComplaint } from '../jobs-errors.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH, type JobLinkStyle, type LinkBase } from '../views/job-view.ts'
import { readSubmitBody } from './submit.ts'

interface PostBatchDeps {
  readonly contextOf: ContextOf
  readonly submitBatch: SubmitBatch
  readonly check: ContractCheck
  readonly turns: Turns
  readonly maxBodyBytes: number
  readonly linkStyle: BatchLinks['style']
}

export function postBatch(app: FastifyInstance, deps: PostBatchDeps): void {
  const { contextOf, submitBatch, check, turns, maxBodyBytes, linkStyle } = deps
  app.post(`${API_PATH}/jobs/batch`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const { accountId, keyId, pool } = context
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const bytes = await readBodyBytes(request.raw, { maxBytes: maxBodyBytes })
    const digest = idempotencyKey === null ? '' : await turns.run(digestSteps(bytes, pool))
    const body = mustBeObject(await parseLosslessBody(request.raw, bytes))
    const { isWhole, items, changes } = readBatchBody(body, check)
    try {
      const giving = { signal: untilGone(request, reply) }
      const asked = { accountId, keyId, pool, idempotencyKey, digest, isWhole, items, changes, giving }
      const batch = await submitBatch(asked)
      return sendJson(reply, 201, toBatchView(batch, { base: context, style: linkStyle }))
    } catch (error) {
      throw error instanceof BatchRefusedError ? withItems(error) : error
    }
  })
}

// A piece takes a millisecond or so.
const PIECE_BYTES = 1024 * 1024

/** The same bytes at the address of another deployment are another request. */
function* digestSteps(bytes: Buffer, pool: string | null): Work<string> {
  const hash = createHash('sha256').update(`${pool ?? ''}\n`)
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    hash.update(bytes.subarray(at, at + PIECE_BYTES))
    yield
  }
  return hash.digest('base64url')
}

const MAX_TOLD = 100

export function withItems({ message, items }: BatchRefusedError): ServiceError {
  const told = items.slice(0, MAX_TOLD).map((item) => ({ index: item.index, ...toComplaint(item) }))
  return new ServiceError('batch_refused', message, { details: { refused: items.length, items: told } })
}

/** What can be asked of one batch. One that this caller cannot reach looks exactly like one that does not exist. */
interface BatchesByIdDeps {
  readonly contextOf: ContextOf
  readonly batches: Batches
  readonly openContent: OpenContent
  readonly linkStyle: BatchLinks['style']
}

const BATCH_ROUTE = `${API_PATH}/batches/:id`

function getBatch(app: FastifyInstance, { contextOf, batches, linkStyle }: BatchesByIdDeps): void {
  app.get(BATCH_ROUTE, needs('jobs:read'), async (request, reply) => {
    const context = contextOf(request)
    const batch = await batches.find(context, idOf(request))
    return sendJson(reply, 200, toBatchView(batch, { base: context, style: linkStyle }))
  })
}

/** Whatever body comes is ignored. */
function cancelBatch(app: FastifyInstance, { contextOf, batches, linkStyle }: BatchesByIdDeps): void {
  app.post(`${BATCH_ROUTE}/cancel`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const batch = await batches.cancel(context, idOf(request))
    return sendJson(reply, 200, toBatchView(batch, { base: context, style: linkStyle }))
  })
}

function getBatchOutputs(app: FastifyInstance, { contextOf, batches, openContent }: BatchesByIdDeps): void {
  app.get(`${BATCH_ROUTE}/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const context = contextOf(request)
    const id = idOf(request)
    const jobs = await batches.jobs(context, id)
    return sendJobsArchive(reply, { jobs, name: `batch-${id}` }, openContent)
  })
}

export const BATCHES_BY_ID = [getBatch, cancelBatch, getBatchOutputs]

/** What a request for many jobs says: jobs one by one, or one graph with a table or a product of changes. */
interface BatchBody {
  readonly isWhole: boolean
  readonly items: readonly ReadItem[]
  /** null: jobs one by one. */
  readonly changes: readonly Change[] | null
}

const COMMON = ['extra_data', 'metadata', 'priority', 'webhook', 'reuse', 'not_before', 'expires_queued_after']

function readBatchBody(body: JsonObject, check: ContractCheck): BatchBody {
  const isWhole = readIsWhole(body['mode'], check)
  const given = ['jobs', 'rows', 'product'].filter((name) => body[name] !== undefined)
  if (given.length !== 1) throw invalidField('jobs', 'or rows or product must be there, and only one of them')
  if (body['jobs'] !== undefined) return { isWhole, items: readJobs(body, check), changes: null }
  // Read once: what is wrong with them is wrong with the request, and all jobs share them.
  const common = readSubmitBody(body, check)
  const changes = body['rows'] === undefined ? readProduct(body['product'], check) : readRows(body['rows'], check)
  const items = changes.map((change, index): ReadItem => {
    const where = body['rows'] === undefined ? 'product' : `rows[${index}]`
    return () => ({ ...common, workflow: applyChange(common.workflow, change, where) })
  })
  return { isWhole, items, changes }
}

export function readIsWhole(mode: JsonValue | undefined, check: ContractCheck): boolean {
  if (mode === undefined) return true
  if (check('BatchMode', mode, 'mode') !== null) throw invalidField('mode', 'must be all_or_nothing or per_item')
  return mode === 'all_or_nothing'
}

/** What one of them leaves out is what the batch says. */
function readJobs(body: JsonObject, check: ContractCheck): ReadItem[] {
  const jobs = mustBeList(body['jobs'], 'jobs')
  const common = Object.fromEntries(COMMON.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]))
  const shared = readSubmitBody(common as JsonObject, check)
  return jobs.map(
    (job, index): ReadItem =>
      () => {
        if (!isJsonObject(job)) throw invalidField(`jobs[${index}]`, 'must be an object with a workflow')
        const own = readSubmitBody(job, check)
        return {
          workflow: own.workflow,
          extraData: job['extra_data'] === undefined ? shared.extraData : own.extraData,
          metadata: job['metadata'] === undefined ? shared.metadata : own.metadata,
          priority: job['priority'] === undefined ? shared.priority : own.priority,
          webhook: job['webhook'] === undefined ? shared.webhook : own.webhook,
          reuse: job['reuse'] === undefined ? shared.reuse : own.reuse,
          notBefore: job['not_before'] === undefined ? shared.notBefore : own.notBefore,
          expiresQueuedAfterSeconds:
            job['expires_queued_after'] === undefined
              ? shared.expiresQueuedAfterSeconds
              : own.expiresQueuedAfterSeconds,
        }
      },
  )
}

function readRows(value: JsonValue | undefined, check: ContractCheck): Change[] {
  return mustBeList(value, 'rows').map((row, index) => {
    const problem = check('BatchChange', row, `rows[${index}]`)
    if (problem !== null || !isJsonObject(row)) throw invalidField(`rows[${index}]`, problem ?? 'must be an object')
    return row
  })
}

function readProduct(value: JsonValue | undefined, check: ContractCheck): Change[] {
  const problem = check('BatchProduct', value, 'product')
  if (problem !== null || !isJsonObject(value))
    throw invalidField('product', 'must be an object that names, by <node id>.<input>, 1 to 1000 values each')
  return multiply(value as Readonly<Record<string, readonly JsonValue[]>>)
}

function mustBeList(value: JsonValue | undefined, field: string): readonly JsonValue[] {
  if (Array.isArray(value) && value.length >= 1 && value.length <= MAX_BATCH) return value
  throw invalidField(field, `must be a list of 1 to ${MAX_BATCH}`)
}

/** A batch as the contract shows it. */
interface BatchLinks {
  readonly base: LinkBase
  readonly style: JobLinkStyle
}

export function toBatchView(batch: StoredBatch, links: BatchLinks) {
  const { id, createdAt, expiresAt, isWhole, jobIds, states } = batch
  const accepted = jobIds.filter((jobId) => jobId !== null).length
  const known = [...states.values()]
  return {
    id,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    mode: isWhole ? 'all_or_nothing' : 'per_item',
    total: jobIds.length,
    accepted,
    refused: jobIds.length - accepted,
    counts: countStates(known),
    progress: toProgress(known),
    is_done: known.every(({ status }) => isTerminal(status)),
    items: toItems(batch),
    urls: toUrls(id, links),
  }
}

function countStates(states: readonly JobState[]): Record<JobStatus, number> {
  const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>
  for (const { status } of states) counts[status] += 1
  return counts
}

/** To a thousandth, downwards: 1 means that all have ended. */
function toProgress(states: readonly JobState[]): number {
  if (states.length === 0) return 1
  const done = states.reduce((sum, { status, progress }) => sum + (isTerminal(status) ? 1 : (progress ?? 0)), 0)
  return Math.floor((1000 * done) / states.length) / 1000
}

const ofBounds = (refusal: 'run_limit' | 'spend_limit', message: string) => new ServiceError(refusal, message)

const LIMIT_REFUSALS: Readonly<Record<BatchLimit, ReturnType<typeof toComplaint>>> = {
  queue_full: toComplaint(queueFull(1)),
  insufficient_credits: { ...toComplaint(insufficientCredits(null)), details: null },
  run_limit: toComplaint(ofBounds('run_limit', 'the endpoint takes no more runs for now; send it again later')),
  spend_limit: toComplaint(ofBounds('spend_limit', 'the budget of the endpoint does not cover this run')),
}

function toItems({ jobIds, refused, limitedBy, states }: StoredBatch) {
  const refusals = new Map(refused.map((item) => [item.index, toComplaint(item)]))
  return jobIds.map((jobId, index) => ({
    index,
    job_id: jobId,
    status: jobId === null ? null : (states.get(jobId)?.status ?? null),
    error: jobId !== null ? null : (refusals.get(index) ?? (limitedBy === null ? null : LIMIT_REFUSALS[limitedBy])),
  }))
}

function toUrls(id: string, { base: { origin, mountPrefix }, style: { isAbsolute } }: BatchLinks) {
  const root = `${isAbsolute ? origin : ''}${mountPrefix}${API_PATH}`
  const self = `${root}/batches/${id}`
  return { self, jobs: `${root}/jobs?batch_id=${id}`, cancel: `${self}/cancel`, outputs: `${self}/outputs.zip` }
}
