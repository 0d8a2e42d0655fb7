/** The queue in the hands of its owner: the places of jobs that wait, and a pause of the whole account. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Queue } from '../../../domain/jobs/queue/manage-queue.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { toPauseView, toWaitingChange } from '../../kit/jobs/queue-changes.ts'
import { idOf, readParameters, sendJson } from '../../kit/request.ts'
import type { ContextOf, JobReach, ReachableJobs } from '../jobs-operation.ts'
import { API_PATH, type JobBytes } from '../views/job-view.ts'

interface QueueDeps {
  readonly contextOf: ContextOf
  readonly check: ContractCheck
  readonly jobs: ReachableJobs
  readonly queue: Queue
  readonly jobBytes: JobBytes
}

const QUEUE = `${API_PATH}/queue`
const MAX_BODY_BYTES = 16_384

async function readBody(request: FastifyRequest, { check }: QueueDeps, schema: string): Promise<JsonObject> {
  const hasBody =
    request.raw.headers['transfer-encoding'] !== undefined || Number(request.raw.headers['content-length'] ?? 0) > 0
  const body = hasBody ? await readJsonObject(request, { maxBytes: MAX_BODY_BYTES }) : {}
  const problem = check(schema, body, 'body')
  if (problem === null) return body
  const field = /^body\.([\w.]+) /.exec(problem)?.[1] ?? null
  throw new ServiceError('invalid_field', problem.replace(/^body\./, ''), { details: { field } })
}

/** A job that is out of reach looks like one that does not exist, also to whoever may not change it. */
function changeJob(app: FastifyInstance, deps: QueueDeps): void {
  app.patch(`${API_PATH}/jobs/:id`, needs('jobs:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    const jobId = idOf(request)
    await deps.jobs.find(context, jobId)
    const change = toWaitingChange(await readBody(request, deps, 'JobChange'))
    const job = await deps.queue.change(context.accountId, jobId, change)
    return sendJson(reply, 200, deps.jobBytes(job, context))
  })
}

async function toState({ queue }: QueueDeps, { accountId, pool }: JobReach) {
  const pauses = await queue.pausesOf(accountId, pool ?? DEFAULT_POOL)
  return { is_paused: pauses.length > 0, pauses: pauses.map(toPauseView) }
}

function getQueue(app: FastifyInstance, deps: QueueDeps): void {
  app.get(QUEUE, needs('jobs:read'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    return sendJson(reply, 200, await toState(deps, deps.contextOf(request)))
  })
}

function pauseQueue(app: FastifyInstance, deps: QueueDeps): void {
  app.post(`${QUEUE}/pause`, needs('jobs:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    const { reason = null } = await readBody(request, deps, 'QueuePause')
    await deps.queue.pause({ scope: 'own', name: context.accountId }, reason as string | null)
    return sendJson(reply, 200, await toState(deps, context))
  })
}

/** Clients send no body; whatever body comes is ignored. */
function resumeQueue(app: FastifyInstance, deps: QueueDeps): void {
  app.post(`${QUEUE}/resume`, needs('jobs:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    await deps.queue.resume({ scope: 'own', name: context.accountId })
    return sendJson(reply, 200, await toState(deps, context))
  })
}

export const QUEUE_OPERATIONS = [changeJob, getQueue, pauseQueue, resumeQueue]
