/** What can be asked of one job. A job that this caller cannot reach looks exactly like one that does not exist. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { Gate } from '../../kit/guards/gate.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { EventHub } from '../events/event-hub.ts'
import type { ContextOf } from '../jobs-operation.ts'
import type { ReachableJobs } from '../reachable-jobs.ts'
import type { JobBytes } from '../views/job-bytes.ts'
import { API_PATH } from '../views/links.ts'

interface JobsByIdDeps {
  readonly contextOf: ContextOf
  readonly jobs: ReachableJobs
  readonly jobBytes: JobBytes
  readonly turns: Turns
  readonly gate: Pick<Gate, 'answerHeaders' | 'authenticate'>
  readonly hub: Pick<EventHub, 'open'>
}

export const JOB_ROUTE = `${API_PATH}/jobs/:id`
export const EVENTS_ROUTE = `${JOB_ROUTE}/events`
/** Of both, here and in front of the framework. */
export const FOLLOW_RIGHT = 'jobs:read'

/**
 * Answered from our own store, whatever state the engine is in. A job in memory is answered in front of the framework
 * (jobs-hot-path.ts) with the very same bytes; everything else, refusals included, comes here.
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

/** Follows the job as server-sent events. Ordinarily opened in front of the framework (jobs-hot-path.ts), as the same stream. */
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

function idOf(request: FastifyRequest): string {
  return (request.params as { id: string }).id
}
