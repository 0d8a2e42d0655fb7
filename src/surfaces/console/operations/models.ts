/** The models that the account may use, and its calls. */
import type { FastifyInstance } from 'fastify'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import type { ChargeGroup } from '../../../domain/credits/charges.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { GPU_GROUPS, type GpuGroup } from '../../../domain/jobs/read/gpu-report.ts'
import { CALL_STATUSES, type CallStatus, type ListedCall } from '../../../domain/models/calls/call-list.ts'
import { describeModel, describePrice, titleOf } from '../../../domain/models/catalog/describe-model.ts'
import { type Model, readModelId } from '../../../domain/models/catalog/model.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { createTimeCursors } from '../../kit/cursor.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readNumber, readParameters, sendJson } from '../../kit/request.ts'
import type { ModelParts } from '../../kit/surface-parts.ts'
import { readUsageWish, toGpuView, toUsageView, USAGE_PARAMETERS } from '../../kit/usage-view.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

const MODEL_PAGE = { fallback: 500, max: 1000 }
const CALL_PAGE = { fallback: 50, max: 100 }
const MESSAGE_MAX_LENGTH = 200

export function listModels(app: FastifyInstance, { callerOf, console: { models } }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/models`, needs('models:read'), async (request, reply) => {
    const caller = callerOf(request)
    const parameters = readParameters(request.raw.url ?? '', ['after', 'limit'])
    const limit = readNumber(parameters, 'limit', MODEL_PAGE)
    const { catalog, isVisible } = await catalogFor(models, caller)
    const { models: found, hasMore } = catalog.page(parameters.get('after') ?? null, limit, isVisible)
    const shown = await Promise.all(
      found.map(async (model) => toModelView(model, await models.access.whyNot(caller, model))),
    )
    return sendJson(reply, 200, { models: shown, next: hasMore ? (found.at(-1)?.id ?? null) : null })
  })
}

async function catalogFor({ access }: ModelParts, caller: Caller) {
  try {
    return await access.catalogFor(caller)
  } catch (error) {
    if (!(error instanceof RouterError)) throw error
    const { retryAfterSeconds, message } = error
    const options = { cause: error, ...(retryAfterSeconds !== null && { retryAfterSeconds }) }
    throw new ServiceError(error.refusal === 'rate' ? 'rate_limited' : 'forbidden', message, options)
  }
}

function toModelView(model: Model, whyNot: string | null) {
  const { id, provider, input, output, price, isPriceConfirmed = true, priceSource = null } = model
  return {
    ...{ id, provider, title: titleOf(model), description: describeModel(model) },
    in: input.modalities,
    out: output.modalities,
    price: describePrice(price),
    price_confirmed: isPriceConfirmed,
    price_source: priceSource,
    is_runnable: whyNot === null,
    why_not: whyNot,
    example: input.example,
  }
}

/** Newest first. */
export function listCalls(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  const cursors = createTimeCursors(parts.cursorSecret)
  app.get(`${CONSOLE_API}/calls`, needs('models:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const parameters = readParameters(request.raw.url ?? '', ['model', 'state', 'limit', 'cursor'])
    const [modelId, status] = [readModel(parameters.get('model')), readStatus(parameters.get('state'))]
    const limit = readNumber(parameters, 'limit', CALL_PAGE)
    const name = JSON.stringify(['calls', accountId, modelId, status])
    const cursor = parameters.get('cursor') ?? null
    const before = cursor === null ? null : Number(cursors.read(cursor, name).id)
    const found = await parts.models.calls.list(accountId, { before, limit: limit + 1, modelId, status })
    const page = found.slice(0, limit)
    const last = found.length > limit ? page.at(-1) : undefined
    return sendJson(reply, 200, {
      calls: page.map(toCallView),
      next_cursor:
        last === undefined ? null : cursors.encode({ createdAt: last.createdAt, id: String(last.seq) }, name),
    })
  })
}

function readModel(text: string | undefined): string | null {
  if (text === undefined) return null
  const model = readModelId(text)
  if (model === null) throw new ServiceError('invalid_request', 'model must be an id such as provider/model')
  return model.id
}

function readStatus(text: string | undefined): CallStatus | null {
  if (text === undefined) return null
  const status = CALL_STATUSES.find((each) => each === text)
  if (status !== undefined) return status
  throw new ServiceError('invalid_request', `state must be one of ${CALL_STATUSES.join(', ')}`)
}

function toCallView(call: ListedCall) {
  const { refusal, costMicros } = call
  return {
    request_id: call.id,
    model: call.modelId,
    status: call.status,
    is_queued: call.isQueued,
    job_id: call.jobId,
    created_at: call.createdAt.toISOString(),
    completed_at: call.finishedAt?.toISOString() ?? null,
    cost_usd: costMicros === null ? null : writeUsd(costMicros),
    error: refusal === null ? null : { code: refusal.refusal, message: refusal.message.slice(0, MESSAGE_MAX_LENGTH) },
  }
}

// What the account spent, by day and by what it was for.

const GROUPS: readonly ChargeGroup[] = ['day', 'model', 'pool', 'endpoint', 'key']

export function getUsage(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/usage`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const wish = readUsageWish(readParameters(request.raw.url ?? '', USAGE_PARAMETERS), GROUPS)
    const [report, keys] = await Promise.all([
      parts.reportUsage(accountId, wish),
      wish.by === 'key' ? (parts.keys?.list(accountId) ?? []) : [],
    ])
    return sendJson(reply, 200, toUsageView(report, new Map(keys.map(({ id, name }) => [id, name]))))
  })
}

const OWN_GPU_GROUPS: readonly GpuGroup[] = GPU_GROUPS.filter((group) => group !== 'account')

/** How long servers computed the account's jobs. */
export function getGpuUsage(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/usage/gpu`, needs('jobs:read'), async (request, reply) => {
    const wish = readUsageWish(readParameters(request.raw.url ?? '', USAGE_PARAMETERS), OWN_GPU_GROUPS)
    return sendJson(reply, 200, toGpuView(await parts.reportGpuUse(callerOf(request).accountId, wish)))
  })
}
