/** Jobs in short, as they change; what is done to many of them; their outputs in one archive. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { systemTicker } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import { readMetadata } from '../../../domain/jobs/submit/job-labels.ts'
import { readJsonBody, readJsonObject } from '../../kit/bodies/json-body.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { readSession } from '../../kit/guards/session-cookie.ts'
import { createCancelMany, readCancelWish } from '../../kit/jobs/cancel-many.ts'
import { createReadPage, readFields } from '../../kit/jobs/job-pages.ts'
import { toCompactView, toSummaryView } from '../../kit/jobs/job-view.ts'
import { sendJobArchive, sendJobsArchive } from '../../kit/jobs/outputs-archive.ts'
import { readParameters, sendJson } from '../../kit/request.ts'
import { SummaryFeed } from '../../kit/streams/summary-feed.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { jobIdOf } from './job.ts'

export function listJobs(app: FastifyInstance, { callerOf, console: parts, clock }: ConsoleDeps): void {
  const readPage = createReadPage({ ...parts, clock })
  app.get(`${CONSOLE_API}/jobs`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const fields = readFields(request.raw.url ?? '')
    const toView = fields.get('compact') === '1' ? toCompactView : toSummaryView
    return sendJson(reply, 200, await readPage(accountId, fields, { toView, others: ['compact'] }))
  })
}

// What jobs made as one archive.

const MAX_JOBS = 100

export function getJobOutputsZip(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/jobs/:id/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const job = await deps.jobs.reader.find(accountId, jobIdOf(request))
    return sendJobArchive(reply, job, deps.console.openContent)
  })
}

export function getOutputsZip(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const ids = readIds(readParameters(request.raw.url ?? '', ['jobs']).get('jobs') ?? '')
    const jobs: Job[] = []
    for (const id of ids) jobs.push(await deps.jobs.reader.find(accountId, id))
    return sendJobsArchive(reply, { jobs, name: `${jobs.length}-jobs` }, deps.console.openContent)
  })
}

function readIds(text: string): readonly string[] {
  const ids = [...new Set(text.split(','))]
  if (ids.length > MAX_JOBS || !ids.every(isUuid))
    throw new ServiceError('invalid_request', `jobs must be a comma list of at most ${MAX_JOBS} ids of jobs`)
  return ids
}

// What can be done to jobs: cancel one, some or all that fit a filter, and run one again with changes.

// In one request; a caller with more jobs repeats it.
const MAX_CANCELED = 10_000
const MAX_BODY_BYTES = 1_048_576

/** `dry_run` tells how many it would be, so that a person can be asked first. */
export function cancelJobs(app: FastifyInstance, { callerOf, jobs, console: parts, clock }: ConsoleDeps): void {
  const cancelMany = createCancelMany({ summaries: parts.summaries, clock, maxCanceled: MAX_CANCELED })
  app.post(`${CONSOLE_API}/jobs/cancel`, needs('jobs:write'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const wish = readCancelWish(await readJsonBody(request, { maxBytes: MAX_BODY_BYTES }))
    const outcome = await cancelMany(accountId, wish, ({ id }, { isOnlyQueued }) =>
      jobs.cancel(accountId, id, { isOnlyQueued }),
    )
    return sendJson(reply, 200, outcome)
  })
}

/**
 * With some inputs changed. It happens here, because a seed has up to 64 bits, which a page could not hold.
 */
export function rerunJob(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, jobs, console: parts, clock, limits } = deps
  app.post(`${CONSOLE_API}/jobs/:id/rerun`, needs('jobs:write'), async (request, reply) => {
    const { accountId, keyId } = callerOf(request)
    const jobId = jobIdOf(request)
    const body = await readJsonObject(request, { maxBytes: limits.maxBodyBytes })
    const job = await jobs.rerun({
      ...{ accountId, keyId, jobId, idempotencyKey: null },
      change: (workflow) => applyChanges(workflow, body['changes']),
      ...(body['metadata'] !== undefined && { metadata: readMetadata(body['metadata']) }),
    })
    const [summary] = await parts.summaries.findMany(accountId, [job.id], clock.now())
    if (summary === undefined) throw noSuchJob()
    return sendJson(reply, 201, toSummaryView(summary))
  })
}

const MAX_CHANGES = 10_000

function applyChanges(workflow: JsonValue, changes: JsonValue | undefined): JsonValue {
  if (changes === undefined) return workflow
  if (!Array.isArray(changes) || changes.length > MAX_CHANGES)
    throw invalidField('changes', `must be a list of at most ${MAX_CHANGES} changes`)
  for (const [index, change] of changes.entries()) applyChange(workflow, change, `changes[${index}]`)
  return workflow
}

function applyChange(workflow: JsonValue, change: JsonValue, field: string): void {
  if (!isJsonObject(change) || typeof change['node'] !== 'string' || typeof change['input'] !== 'string')
    throw invalidField(field, 'must name a node and an input')
  const { node: nodeId, input, value } = change
  const node = isJsonObject(workflow) && Object.hasOwn(workflow, nodeId as string) ? workflow[nodeId as string] : null
  if (!isJsonObject(node) || !isJsonObject(node['inputs']))
    throw invalidField(field, 'names a node that the job does not have')
  if (value === undefined) throw invalidField(field, 'has no value')
  // Not by assignment: an input may be called `__proto__`.
  Object.defineProperty(node['inputs'] as JsonObject, input as string, {
    ...{ value, enumerable: true, configurable: true, writable: true },
  })
}

/** What happens to the account's jobs, as server-sent events. */
export function getEvents(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts, bus, clock, files, log, streams } = deps
  app.get(`${CONSOLE_API}/events`, { ...needs('jobs:read'), exposeHeadRoute: false }, async (request, reply) => {
    const caller = callerOf(request)
    const { accountId } = caller
    await streams.open(reply.raw, {
      ...toStreamTerms(request, deps),
      caller,
      key: `account ${accountId}`,
      make: () =>
        new SummaryFeed({
          ...{ scope: accountId, bus, log, ticker: systemTicker, toView: toSummaryView },
          summaries: parts.summaries,
          buildId: () => files.current()?.id ?? null,
          now: () => clock.now(),
        }),
    })
    // Only now: a refusal above must still be answered by the framework.
    return reply.hijack()
  })
}

/** The headers of a stream, and how long it may last for a browser session. */
export function toStreamTerms(request: FastifyRequest, { gate, console: parts }: ConsoleDeps) {
  const { authorization, 'x-api-key': key } = request.headers
  const isOwnCredential = authorization !== undefined || key !== undefined
  const text = isOwnCredential ? null : readSession(request.raw, serviceAddressOf(request), 'account')
  return {
    headers: gate.answerHeaders(request.headers.origin, request.id),
    ...(text !== null &&
      gate.hasCredentials && {
        session: { text, isGood: async () => (await parts.signIn.openAccount(text)) !== null },
      }),
  }
}
