/** What can be asked of one job. A job that this caller cannot reach looks exactly like one that does not exist. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import { type Caller, mustHaveScope } from '../../../domain/accounts/caller.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { writeAnswer } from '../../kit/connections/raw-connections.ts'
import type { PoolOf } from '../../kit/guards/addresses.ts'
import type { Gate, ServiceAddress } from '../../kit/guards/gate.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, markRoute, requestIdOf, sendJson } from '../../kit/request.ts'
import type { AnswerError, ErrorAnswer, HotRoute } from '../../kit/surface.ts'
import type { EventHub } from '../events/event-hub.ts'
import type { ContextOf, JobReach, ReachableJobs } from '../jobs-operation.ts'
import { API_PATH, type JobBytes } from '../views/job-view.ts'

interface JobsByIdDeps {
  readonly contextOf: ContextOf
  readonly jobs: ReachableJobs
  readonly jobBytes: JobBytes
  readonly turns: Turns
  readonly gate: Pick<Gate, 'answerHeaders' | 'authenticate'>
  readonly hub: Pick<EventHub, 'open'>
}

const JOB_ROUTE = `${API_PATH}/jobs/:id`
const EVENTS_ROUTE = `${JOB_ROUTE}/events`
/** Of both, here and in front of the framework. */
const FOLLOW_RIGHT = 'jobs:read'

/**
 * Answered from our own store, whatever state the engine is in. A job in memory is answered in front of the framework
 * (createHotPath) with the very same bytes; everything else, refusals included, comes here.
 */
function getJob(app: FastifyInstance, { contextOf, jobs, jobBytes, turns }: JobsByIdDeps): void {
  app.get(JOB_ROUTE, needs(FOLLOW_RIGHT), async (request, reply) => {
    const context = contextOf(request)
    const job = await jobs.find(context, idOf(request))
    return sendJson(reply, 200, await turns.run(jobBytes.inSteps(job, context)))
  })
}

/** The executed graph. Its text goes out as it was stored: a number must not change on its way through us. */
function getJobWorkflow(app: FastifyInstance, { contextOf, jobs }: JobsByIdDeps): void {
  app.get(`${JOB_ROUTE}/workflow`, needs('jobs:read'), async (request, reply) => {
    const text = await jobs.workflow(contextOf(request), idOf(request))
    return sendJson(reply, 200, `{"workflow":${text},"format":"api"}`)
  })
}

/** What the run printed, or 204 when there is nothing. */
function getJobLogs(app: FastifyInstance, { contextOf, jobs }: JobsByIdDeps): void {
  app.get(`${JOB_ROUTE}/logs`, needs('jobs:read'), async (request, reply) => {
    const log = await jobs.log(contextOf(request), idOf(request))
    if (log === null) return reply.code(204).send()
    const { text, truncated, capturedAt, complete } = log
    return sendJson(reply, 200, { text, truncated, captured_at: capturedAt.toISOString(), complete })
  })
}

/** Follows the job as server-sent events. Ordinarily opened in front of the framework (createHotPath), as the same stream. */
function getJobEvents(app: FastifyInstance, { contextOf, gate, hub }: JobsByIdDeps): void {
  app.get(EVENTS_ROUTE, { ...needs(FOLLOW_RIGHT), exposeHeadRoute: false }, async (request, reply) => {
    const { requestId, ...context } = contextOf(request)
    const jobId = idOf(request)
    const headers = gate.answerHeaders(request.headers.origin, requestId)
    const caller = await gate.authenticate(request.raw, 'bearer')
    await hub.open(reply.raw, { caller, reach: context, jobId, base: context, headers })
    // Only now: a refusal above must still be answered by the framework.
    return reply.hijack()
  })
}

/** Clients send no body and no Content-Type; whatever body comes is ignored. */
function cancelJob(app: FastifyInstance, { contextOf, jobs, jobBytes }: JobsByIdDeps): void {
  app.post(`${JOB_ROUTE}/cancel`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const job = await jobs.cancel(context, idOf(request))
    return sendJson(reply, 200, jobBytes(job, context))
  })
}

export const JOBS_BY_ID = [getJob, getJobWorkflow, getJobLogs, getJobEvents, cancelJob]

/**
 * The two most frequent requests, polling a job and opening an event stream, answered in front of the framework: the framework
 * takes half of a poll's time, and a stream would hold its objects for as long as it is open. The same guards run here. A caller
 * without a good credential, or one that asks too often, is refused here too: a refusal must not cost more than an answer. At
 * any other irregularity the request is left, untouched, to the framework, which then refuses it properly.
 */
interface HotPathDeps {
  readonly gate: Gate
  readonly peek: ReachableJobs['peek']
  readonly poolOf: PoolOf
  readonly jobBytes: JobBytes
  readonly hub: Pick<EventHub, 'open'>
  readonly answerError: AnswerError
}

interface KnownCaller extends JobReach {
  readonly caller: Caller
  readonly address: ServiceAddress
}

const UUID_LENGTH = 36
const EVENTS = '/events'

export function createHotPath({ gate, peek, poolOf, jobBytes, hub, answerError }: HotPathDeps): HotRoute {
  const prefix = `${gate.mountPrefix}${API_PATH}/jobs/`
  const idEnd = prefix.length + UUID_LENGTH

  /** The refusal of a credential is an answer; null: the framework's hooks run into the same refusal and answer it. */
  function identify(request: IncomingMessage): KnownCaller | ServiceError | null {
    try {
      const address = gate.admit(request)
      const caller = authenticate(request)
      if (caller === null || caller instanceof ServiceError) return caller
      mustHaveScope(caller, FOLLOW_RIGHT)
      const { accountId } = caller
      return { caller, address, accountId, pool: poolOf(address, accountId) }
    } catch {
      return null
    }
  }

  function authenticate(request: IncomingMessage): Caller | ServiceError | null {
    try {
      const caller = gate.authenticate(request, 'bearer')
      return caller instanceof Promise ? null : caller
    } catch (error) {
      return error instanceof ServiceError ? error : null
    }
  }

  // Refusals of bad credentials are the same error objects again and again.
  const refusals = new WeakMap<ServiceError, ErrorAnswer>()

  function refuse(request: IncomingMessage, response: ServerResponse, refusal: ServiceError): true {
    const requestId = requestIdOf(request)
    const answer = refusals.get(refusal) ?? answerError(refusal, requestId)
    refusals.set(refusal, answer)
    writeAnswer(response, gate.answerHeaders(request.headers.origin, requestId), answer)
    return true
  }

  function answerJob(request: IncomingMessage, response: ServerResponse, jobId: string): boolean {
    const caller = identify(request)
    if (caller === null) return false
    markRoute(request, JOB_ROUTE)
    if (caller instanceof ServiceError) return refuse(request, response, caller)
    const job = peek(caller, jobId)
    if (job === undefined || !jobBytes.isQuick(job, caller.address)) return false
    const bytes = jobBytes(job, caller.address)
    const headers = gate.answerHeaders(request.headers.origin, requestIdOf(request))
    headers.push('Content-Type', 'application/json', 'Content-Length', String(bytes.length))
    response.writeHead(200, headers)
    response.end(bytes)
    return true
  }

  function streamEvents(request: IncomingMessage, response: ServerResponse, jobId: string): boolean {
    const known = isUuid(jobId) ? identify(request) : null
    if (known === null) return false
    markRoute(request, EVENTS_ROUTE)
    if (known instanceof ServiceError) return refuse(request, response, known)
    const requestId = requestIdOf(request)
    const headers = gate.answerHeaders(request.headers.origin, requestId)
    hub
      .open(response, { caller: known.caller, reach: known, jobId, base: known.address, headers })
      .catch((error: unknown) => writeAnswer(response, headers, answerError(error, requestId)))
    return true
  }

  return {
    prefix,
    answer(request, response) {
      const { method, url = '' } = request
      if (method !== 'GET') return false
      if (url.length === idEnd) return answerJob(request, response, url.slice(prefix.length))
      const isEvents = url.length === idEnd + EVENTS.length && url.endsWith(EVENTS)
      return isEvents && streamEvents(request, response, url.slice(prefix.length, idEnd))
    },
  }
}
