/** Schedules of an account: what is submitted at the times of cron fields, and what became of it. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type JsonObject, type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import type { ScheduleOwner, Schedules } from '../../../domain/schedules/manage-schedules.ts'
import type { Schedule } from '../../../domain/schedules/schedule.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readParameters, sendJson } from '../../kit/request.ts'
import type { ContextOf, ReachableJobs } from '../jobs-operation.ts'
import { API_PATH, type JobBytes } from '../views/job-view.ts'
import {
  toScheduleEdit,
  toScheduleRunView,
  toScheduleView,
  toScheduleWish,
  toWholeScheduleView,
} from '../views/schedule-view.ts'

interface ScheduleDeps {
  readonly contextOf: ContextOf
  readonly check: ContractCheck
  readonly schedules: Schedules
  readonly jobs: Pick<ReachableJobs, 'find'>
  readonly jobBytes: JobBytes
}

const SCHEDULES = `${API_PATH}/schedules`
const SCHEDULE = `${SCHEDULES}/:id`
const MAX_BODY_BYTES = 1_310_720
const UPCOMING = 5

async function readBody(request: FastifyRequest, { check }: ScheduleDeps, schema: string): Promise<JsonObject> {
  const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
  const problem = check(schema, body, 'body')
  if (problem === null) return body
  const field = /^body\.([\w.]+) /.exec(problem)?.[1] ?? null
  throw new ServiceError('invalid_field', problem.replace(/^body\.?/, ''), { details: { field } })
}

function ownerOf({ contextOf }: ScheduleDeps, request: FastifyRequest): ScheduleOwner {
  const { accountId, keyId, scopes, endpoints, pool = null } = contextOf(request)
  return { accountId, keyId, scopes, endpoints, pool }
}

/** Seeds keep all of their digits. */
function toText({ schedules }: ScheduleDeps, schedule: Schedule): string {
  const view = toWholeScheduleView(schedule, schedules.upcoming(schedule, UPCOMING))
  return stringifyLosslessJson(view as unknown as JsonValue)
}

function listSchedules(app: FastifyInstance, { contextOf, schedules }: ScheduleDeps): void {
  app.get(SCHEDULES, needs('jobs:read'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    const found = await schedules.list(contextOf(request).accountId)
    return sendJson(reply, 200, { schedules: found.map(toScheduleView) })
  })
}

function createSchedule(app: FastifyInstance, deps: ScheduleDeps): void {
  app.post(SCHEDULES, needs('jobs:write'), async (request, reply) => {
    const wish = toScheduleWish(await readBody(request, deps, 'ScheduleRequest'))
    return sendJson(reply, 201, toText(deps, await deps.schedules.create(ownerOf(deps, request), wish)))
  })
}

function getSchedule(app: FastifyInstance, deps: ScheduleDeps): void {
  app.get(SCHEDULE, needs('jobs:read'), async (request, reply) => {
    const { accountId } = deps.contextOf(request)
    return sendJson(reply, 200, toText(deps, await deps.schedules.find(accountId, idOf(request))))
  })
}

function updateSchedule(app: FastifyInstance, deps: ScheduleDeps): void {
  app.patch(SCHEDULE, needs('jobs:write'), async (request, reply) => {
    const edit = toScheduleEdit(await readBody(request, deps, 'ScheduleUpdateRequest'))
    return sendJson(reply, 200, toText(deps, await deps.schedules.change(ownerOf(deps, request), idOf(request), edit)))
  })
}

function deleteSchedule(app: FastifyInstance, { contextOf, schedules }: ScheduleDeps): void {
  app.delete(SCHEDULE, needs('jobs:write'), async (request, reply) => {
    await schedules.remove(contextOf(request).accountId, idOf(request))
    return reply.code(204).send()
  })
}

function pauseSchedule(app: FastifyInstance, deps: ScheduleDeps): void {
  app.post(`${SCHEDULE}/pause`, needs('jobs:write'), async (request, reply) => {
    const { accountId } = deps.contextOf(request)
    const hasBody =
      request.raw.headers['transfer-encoding'] !== undefined || Number(request.raw.headers['content-length'] ?? 0) > 0
    const { reason = null } = hasBody ? await readBody(request, deps, 'QueuePause') : {}
    const paused = await deps.schedules.pause(accountId, idOf(request), reason as string | null)
    return sendJson(reply, 200, toText(deps, paused))
  })
}

/** Clients send no body; whatever body comes is ignored. */
function resumeSchedule(app: FastifyInstance, deps: ScheduleDeps): void {
  app.post(`${SCHEDULE}/resume`, needs('jobs:write'), async (request, reply) =>
    sendJson(reply, 200, toText(deps, await deps.schedules.resume(ownerOf(deps, request), idOf(request)))),
  )
}

/** Clients send no body; whatever body comes is ignored. */
function runSchedule(app: FastifyInstance, deps: ScheduleDeps): void {
  app.post(`${SCHEDULE}/run`, needs('jobs:write'), async (request, reply) => {
    const context = deps.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const jobId = await deps.schedules.runNow(ownerOf(deps, request), idOf(request), idempotencyKey)
    return sendJson(reply, 201, deps.jobBytes(await deps.jobs.find(context, jobId), context))
  })
}

function listScheduleRuns(app: FastifyInstance, { contextOf, schedules }: ScheduleDeps): void {
  app.get(`${SCHEDULE}/runs`, needs('jobs:read'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    const runs = await schedules.listRuns(contextOf(request).accountId, idOf(request))
    return sendJson(reply, 200, { runs: runs.map(toScheduleRunView) })
  })
}

export const SCHEDULE_OPERATIONS = [
  ...[listSchedules, createSchedule, getSchedule, updateSchedule, deleteSchedule],
  ...[pauseSchedule, resumeSchedule, runSchedule, listScheduleRuns],
]
