/**
 * Calls of endpoints. A call makes a job; with `Prefer: wait` the answer is held until the job has ended. A held answer costs a
 * connection and nothing else: it listens to the job's events, and a caller that leaves changes nothing.
 */
import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { type EndpointOutput, nameFor } from '../../../domain/endpoints/endpoint.ts'
import { isWithin, type Reach } from '../../../domain/endpoints/reach.ts'
import type { RunEndpoint } from '../../../domain/endpoints/run-endpoint.ts'
import type { WaitForRun } from '../../../domain/endpoints/wait-for-run.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { MAX_BATCH } from '../../../domain/jobs/batches/batch.ts'
import { BatchRefusedError } from '../../../domain/jobs/batches/submit-batch.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import type { ListJobs } from '../../../domain/jobs/read/list-jobs.ts'
import { readRunLabels, toRunLabels } from '../../../domain/jobs/submit/job-labels.ts'
import type { JobOrigin } from '../../../domain/jobs/submit/job-origin.ts'
import { readCsv } from '../../kit/bodies/csv.ts'
import { mustBeObject, parseLosslessBody, readBodyBytes, readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import type { TimeCursors } from '../../kit/cursor.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readNumber, readParameters, readWait, sendJson, untilGone } from '../../kit/request.ts'
import { type ContextOf, isReachable, type ReachableJobs, type RequestContext } from '../jobs-operation.ts'
import { ENDPOINTS_PATH, toRunBytes } from '../views/endpoint-view.ts'
import type { ContentLinks, JobBytes, JobLinkStyle } from '../views/job-view.ts'
import { readIsWhole, toBatchView, withItems } from './batches.ts'
import { createDryRunView, type Forecast, readSubmitBody } from './submit.ts'

export interface EndpointRunDeps {
  readonly contextOf: ContextOf
  readonly endpoints: Pick<Reach, 'findToCall' | 'resolveToCall'>
  readonly runs: RunEndpoint
  readonly wait: WaitForRun['wait']
  readonly originOf: (accountId: string, jobId: string) => Promise<JobOrigin | null>
  readonly jobs: Pick<ReachableJobs, 'find'>
  readonly list: ListJobs
  readonly cursors: TimeCursors
  readonly jobBytes: JobBytes
  readonly contentLinks: ContentLinks
  readonly linkStyle: JobLinkStyle
  readonly forecast: Forecast
  readonly check: ContractCheck
  readonly maxBodyBytes: number
}

const RUNS_ROUTE = `${ENDPOINTS_PATH}/:name/runs`

function nameOf(request: FastifyRequest): string {
  return (request.params as { readonly name: string }).name
}

function runEndpoint(app: FastifyInstance, deps: EndpointRunDeps): void {
  app.post(RUNS_ROUTE, needs('endpoints:run'), async (request, reply) => {
    const context = deps.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const waitMs = readWait(request.headers['prefer'])
    const body = await readRunBody(request, deps)
    const { accountId, keyId, endpoints, pool } = context
    const run = await deps.runs.run({
      ...{ accountId, keyId, endpoints, pool, idempotencyKey, signal: untilGone(request, reply) },
      ...{ reference: toReference(nameOf(request), body['version']), inputs: readInputs(body['inputs']) },
      ...readSubmitBody({ ...body, inputs: null }, deps.check),
    })
    const name = encodeURIComponent(nameFor(accountId, run.endpoint))
    void reply.header('location', `${context.mountPrefix}${ENDPOINTS_PATH}/${name}/runs/${run.job.id}`)
    if (waitMs === null) return sendRun(reply, 201, { ...run, outputs: run.version.outputs }, { deps, context })
    const waited = await deps.wait(run.job, waitMs)
    void reply.header('preference-applied', `wait=${Math.floor(waitMs / 1000)}`)
    if (!waited.hasEnded) void reply.header('retry-after', '1')
    const told = { job: waited.job, inputs: run.inputs, outputs: run.version.outputs }
    return sendRun(reply, waited.hasEnded ? 200 : 202, told, { deps, context })
  })
}

function validateEndpointRun(app: FastifyInstance, deps: EndpointRunDeps): void {
  const toView = createDryRunView(deps.forecast)
  app.post(`${RUNS_ROUTE}/validate`, needs('endpoints:run'), async (request, reply) => {
    const { accountId, keyId, endpoints, pool } = deps.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readRunBody(request, deps)
    const fields = readSubmitBody({ ...body, inputs: null }, deps.check)
    const tried = await deps.runs.tryRun({
      ...{ accountId, keyId, endpoints, pool, idempotencyKey },
      ...{ reference: toReference(nameOf(request), body['version']), inputs: readInputs(body['inputs']) },
      ...fields,
    })
    return sendJson(reply, 200, await toView(tried, { accountId, priority: fields.priority }))
  })
}

interface ToldRun {
  readonly job: Job
  readonly inputs: JsonValue
  readonly outputs: readonly EndpointOutput[]
}

function sendRun(
  reply: FastifyReply,
  status: number,
  run: ToldRun,
  { deps, context }: { readonly deps: EndpointRunDeps; readonly context: RequestContext },
): FastifyReply {
  const { origin, mountPrefix } = context
  const base = { origin, mountPrefix, contentLinks: deps.contentLinks }
  return sendJson(reply, status, toRunBytes(deps.jobBytes(run.job, context), run, base))
}

async function readRunBody(request: FastifyRequest, { check, maxBodyBytes }: EndpointRunDeps): Promise<JsonObject> {
  const body = await readJsonObject(request, { maxBytes: maxBodyBytes })
  const unknown = Object.keys(body).find((name) => !RUN_FIELDS.has(name))
  if (unknown !== undefined) {
    const hint = `put the inputs of the endpoint in the object inputs`
    throw invalidField(unknown.slice(0, 64), `is not a field of a run; ${hint}`)
  }
  const version = body['version']
  if (version !== undefined && check('EndpointSelector', version, 'version') !== null)
    throw invalidField('version', 'must be the number or the alias of a version')
  return body
}

const RUN_FIELDS: ReadonlySet<string> = new Set([
  ...['inputs', 'version', 'metadata', 'priority', 'webhook', 'reuse', 'extra_data'],
  ...['not_before', 'expires_queued_after'],
])

function toReference(name: string, version: JsonValue | undefined): string {
  if (version === undefined || version === null) return name
  if (name.includes('@')) throw invalidField('version', 'is in the address already; leave it out')
  return `${name}@${String(version)}`
}

function readInputs(value: JsonValue | undefined): JsonObject {
  if (value === undefined || value === null) return {}
  if (isJsonObject(value)) return value
  throw invalidField('inputs', 'must be an object with a value for each input')
}

function getEndpointRun(app: FastifyInstance, deps: EndpointRunDeps): void {
  app.get(`${RUNS_ROUTE}/:id`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.contextOf(request)
    const { name: called, id } = request.params as { readonly name: string; readonly id: string }
    const name = called.startsWith(`${context.accountId}/`) ? called.slice(context.accountId.length + 1) : called
    const job = await deps.jobs.find(context, id)
    const labels = readRunLabels(job.metadata)
    if (labels === null || labels.name !== name || !isWithin(context, name)) throw noSuchJob()
    const [origin, outputs] = await Promise.all([
      deps.originOf(context.accountId, id),
      outputsOf(deps, context.accountId, labels),
    ])
    const inputs = origin?.endpointInputs == null ? null : parseLosslessJson(origin.endpointInputs)
    return sendRun(reply, 200, { job, inputs, outputs }, { deps, context })
  })
}

/** None where the version was removed with its endpoint: the job's own list has all of them. */
async function outputsOf(
  { endpoints }: EndpointRunDeps,
  accountId: string,
  { name, version }: { readonly name: string; readonly version: number },
): Promise<readonly EndpointOutput[]> {
  try {
    return (await endpoints.resolveToCall({ accountId, endpoints: null }, `${name}@${version}`)).version.outputs
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'not_found') return []
    throw error
  }
}

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100

function listEndpointRuns(app: FastifyInstance, deps: EndpointRunDeps): void {
  app.get(RUNS_ROUTE, needs('endpoints:run'), async (request, reply) => {
    const context = deps.contextOf(request)
    const { accountId, pool } = context
    const name = nameFor(accountId, await deps.endpoints.findToCall(context, nameOf(request)))
    const parameters = readParameters(request.raw.url ?? '', ['limit', 'cursor'])
    const limit = readNumber(parameters, 'limit', { fallback: DEFAULT_LIMIT, max: MAX_LIMIT })
    const filters = JSON.stringify([accountId, pool, name])
    const text = parameters.get('cursor')
    const cursor = text === undefined ? null : deps.cursors.read(text, filters)
    const asked = { pool, statuses: null, metadata: toRunLabels({ name }), limit, cursor }
    const { jobs, next } = await deps.list(accountId, asked)
    const runs = jobs.filter((job) => isReachable(context, job)).map((job) => deps.jobBytes(job, context).toString())
    const more = next === null ? '' : `,"next_cursor":${JSON.stringify(deps.cursors.encode(next, filters))}`
    return sendJson(reply, 200, `{"runs":[${runs.join(',')}],"has_more":${next !== null}${more}}`)
  })
}

function runEndpointBatch(app: FastifyInstance, deps: EndpointRunDeps): void {
  app.post(`${RUNS_ROUTE}/batch`, needs('endpoints:run'), async (request, reply) => {
    const context = deps.contextOf(request)
    const { accountId, keyId, endpoints, pool } = context
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const bytes = await readBodyBytes(request.raw, { maxBytes: deps.maxBodyBytes })
    const digest = hash('sha256', Buffer.concat([Buffer.from(`${request.url}\n`), bytes]), 'base64url')
    const { items, mode, ...common } = mustBeObject(await parseLosslessBody(request.raw, bytes))
    const table = typeof items === 'string' ? readTable(items) : items
    try {
      const batch = await deps.runs.runMany({
        ...{
          accountId,
          keyId,
          endpoints,
          pool,
          idempotencyKey,
          digest,
          reference: nameOf(request),
          signal: untilGone(request, reply),
        },
        ...{ items: mustBeItems(table), areTexts: typeof items === 'string', isWhole: readIsWhole(mode, deps.check) },
        ...readSubmitBody(common, deps.check),
      })
      return sendJson(reply, 201, toBatchView(batch, { base: context, style: deps.linkStyle }))
    } catch (error) {
      throw error instanceof BatchRefusedError ? withItems(error) : error
    }
  })
}

function mustBeItems(items: JsonValue | undefined): JsonObject[] {
  const isRight = Array.isArray(items) && items.length >= 1 && items.length <= MAX_BATCH && items.every(isJsonObject)
  if (!isRight)
    throw invalidField('items', `must be a list of 1 to ${MAX_BATCH} objects with inputs, or a table as CSV`)
  return items as JsonObject[]
}

/** Of a table as CSV: a row for each run, with the names of the inputs in the first line. An empty field is left out. */
function readTable(text: string): JsonObject[] {
  const [head = [], ...rows] = readCsv(text, MAX_BATCH + 1)
  if (rows.length === 0) throw invalidField('items', 'has no row below the names in its table')
  const names = head.map((name) => name.trim())
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw invalidField('items', `names ${JSON.stringify(twice.slice(0, 64))} twice in the first line of its table`)
  return rows.map((row, index) => {
    // A value in the wrong column would run as another input, and nobody would see it.
    if (row.length !== names.length)
      throw invalidField(
        'items',
        `has ${row.length} fields in row ${index + 1} below the names of its table, which are ${names.length}; quote fields that hold commas`,
      )
    return Object.fromEntries(names.flatMap((name, at) => (row[at] ? [[name, row[at] as string]] : [])))
  })
}

export const ENDPOINT_RUN_OPERATIONS = [
  ...[runEndpoint, validateEndpointRun, runEndpointBatch, listEndpointRuns, getEndpointRun],
]
