/**
 * The two most frequent requests, polling a job and opening an event stream, answered in front of the framework: the framework
 * takes half of a poll's time, and a stream would hold its objects for as long as it is open. The same guards run here. A caller
 * without a good credential, or one that asks too often, is refused here too: a refusal must not cost more than an answer. At
 * any other irregularity the request is left, untouched, to the framework, which then refuses it properly.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isUuid } from '../../../lib/ids.ts'
import { type Caller, mustHaveScope } from '../../domain/accounts/caller.ts'
import { ServiceError } from '../../domain/errors.ts'
import { writeAnswer } from '../kit/connections/raw-answer.ts'
import type { PoolOf } from '../kit/guards/deployment-address.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { markRoute, requestIdOf } from '../kit/request-identity.ts'
import type { AnswerError, ErrorAnswer, HotRoute } from '../kit/surface.ts'
import type { EventHub } from './events/event-hub.ts'
import { EVENTS_ROUTE, FOLLOW_RIGHT, JOB_ROUTE } from './operations/jobs-by-id.ts'
import type { JobReach, ReachableJobs } from './reachable-jobs.ts'
import type { JobBytes } from './views/job-bytes.ts'
import { API_PATH } from './views/links.ts'

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
  const jobsPath = `${gate.mountPrefix}${API_PATH}/jobs/`
  const idEnd = jobsPath.length + UUID_LENGTH

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

  return (request, response) => {
    const { url } = request
    if (request.method !== 'GET' || url === undefined || !url.startsWith(jobsPath)) return false
    if (url.length === idEnd) return answerJob(request, response, url.slice(jobsPath.length))
    const isEvents = url.length === idEnd + EVENTS.length && url.endsWith(EVENTS)
    return isEvents && streamEvents(request, response, url.slice(jobsPath.length, idEnd))
  }
}
