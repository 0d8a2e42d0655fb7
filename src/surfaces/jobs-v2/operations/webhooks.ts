/** The webhooks of an account: added, changed, tried out and removed. A secret is shown only in the answer that made it. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { readSecretText, toSecretText } from '../../../../lib/standard-webhooks.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { Webhooks } from '../../../domain/webhooks/manage-webhooks.ts'
import {
  type Attempt,
  DELIVERY_STATES,
  type Delivery,
  type DeliveryState,
  type Endpoint,
  USUAL_EVENTS,
} from '../../../domain/webhooks/webhook.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readParameters, sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/job-view.ts'

interface WebhookDeps {
  readonly contextOf: ContextOf
  readonly webhooks: Webhooks
  readonly check: ContractCheck
}

const WEBHOOKS_PATH = `${API_PATH}/webhooks`
const WEBHOOK_ROUTE = `${WEBHOOKS_PATH}/:id`
const DEFAULT_LOW_USD = 5
const DEFAULT_OVERLAP_SECONDS = 86_400

function sendShown(
  reply: FastifyReply,
  status: number,
  { endpoint, secret }: { readonly endpoint: Endpoint; readonly secret: Uint8Array },
): FastifyReply {
  return sendJson(reply, status, { ...toWebhookView(endpoint), secret: toSecretText(secret) })
}

function listWebhooks(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.get(WEBHOOKS_PATH, needs('jobs:read'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    const endpoints = await webhooks.list(contextOf(request).accountId)
    return sendJson(reply, 200, { webhooks: endpoints.map(toWebhookView) })
  })
}

function createWebhook(app: FastifyInstance, { contextOf, webhooks, check }: WebhookDeps): void {
  app.post(WEBHOOKS_PATH, needs('jobs:write'), async (request, reply) => {
    const body = await readWebhookBody(request, check, 'WebhookCreateRequest')
    const low = body['credits_low_usd']
    const shown = await webhooks.create(contextOf(request).accountId, {
      url: body['url'] as string,
      description: (body['description'] as string | undefined) ?? '',
      events: (body['events'] as readonly string[] | undefined) ?? USUAL_EVENTS,
      creditsLowMicros: toMicros(low === undefined ? DEFAULT_LOW_USD : (low as number | null)),
      secret: readSecret(body['secret'], 'secret'),
    })
    return sendShown(reply, 201, shown)
  })
}

function getWebhookSecret(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  // A caller that may only read jobs must not be able to forge signatures of the service.
  app.get(`${WEBHOOKS_PATH}/secret`, needs('jobs:write'), async (request, reply) =>
    sendJson(reply, 200, { secret: toSecretText(webhooks.commonSecret(contextOf(request).accountId)) }),
  )
}

function getWebhook(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.get(WEBHOOK_ROUTE, needs('jobs:read'), async (request, reply) =>
    sendJson(reply, 200, toWebhookView(await webhooks.find(contextOf(request).accountId, idOf(request)))),
  )
}

function updateWebhook(app: FastifyInstance, { contextOf, webhooks, check }: WebhookDeps): void {
  app.patch(WEBHOOK_ROUTE, needs('jobs:write'), async (request, reply) => {
    const body = await readWebhookBody(request, check, 'WebhookUpdateRequest')
    const changed = await webhooks.change(contextOf(request).accountId, idOf(request), {
      ...(body['url'] !== undefined && { url: body['url'] as string }),
      ...(body['description'] !== undefined && { description: body['description'] as string }),
      ...(body['events'] !== undefined && { events: body['events'] as readonly string[] }),
      ...(body['status'] !== undefined && { state: body['status'] as 'enabled' | 'paused' }),
      ...(body['credits_low_usd'] !== undefined && {
        creditsLowMicros: toMicros(body['credits_low_usd'] as number | null),
      }),
    })
    return sendJson(reply, 200, toWebhookView(changed))
  })
}

function deleteWebhook(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.delete(WEBHOOK_ROUTE, needs('jobs:write'), async (request, reply) => {
    await webhooks.remove(contextOf(request).accountId, idOf(request))
    return reply.code(204).send()
  })
}

function rotateWebhookSecret(app: FastifyInstance, { contextOf, webhooks, check }: WebhookDeps): void {
  app.post(`${WEBHOOK_ROUTE}/rotate`, needs('jobs:write'), async (request, reply) => {
    const body = await readWebhookBody(request, check, 'WebhookRotateRequest')
    const seconds = (body['overlap_seconds'] as number | undefined) ?? DEFAULT_OVERLAP_SECONDS
    const shown = await webhooks.rotate(contextOf(request).accountId, idOf(request), { overlapMs: seconds * 1000 })
    return sendShown(reply, 200, shown)
  })
}

function testWebhook(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.post(`${WEBHOOK_ROUTE}/test`, needs('jobs:write'), async (request, reply) =>
    sendJson(reply, 202, { delivery_id: await webhooks.test(contextOf(request).accountId, idOf(request)) }),
  )
}

function replayWebhook(app: FastifyInstance, { contextOf, webhooks, check }: WebhookDeps): void {
  app.post(`${WEBHOOK_ROUTE}/replay`, needs('jobs:write'), async (request, reply) => {
    const body = await readWebhookBody(request, check, 'WebhookReplayRequest')
    const range = {
      from: readTime(body['from'], 'from'),
      to: readTime(body['to'], 'to'),
      onlyFailed: body['only_failed'] !== false,
    }
    const replayed = await webhooks.replayRange(contextOf(request).accountId, idOf(request), range)
    return sendJson(reply, 202, { replayed })
  })
}

export const WEBHOOK_OPERATIONS = [
  ...[listWebhooks, createWebhook, getWebhookSecret, getWebhook, updateWebhook, deleteWebhook],
  ...[rotateWebhookSecret, testWebhook, replayWebhook],
]

// What was sent to the webhooks of an account, what came of it, and the same once more.

const DELIVERIES_PATH = `${WEBHOOKS_PATH}/deliveries`
const MAX_LIMIT = 100
const DEFAULT_LIMIT = 20

function listWebhookDeliveries(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.get(DELIVERIES_PATH, needs('jobs:read'), async (request, reply) => {
    const query = readParameters(request.raw.url ?? '', ['webhook_id', 'job_id', 'status', 'before', 'limit'])
    const [endpointId, subject, before] = [query.get('webhook_id'), query.get('job_id'), query.get('before')]
    const state = readState(query.get('status'))
    const limit = readLimit(query.get('limit'))
    const found = await webhooks.deliveries(contextOf(request).accountId, {
      limit: limit + 1,
      ...(endpointId !== undefined && { endpointId }),
      ...(subject !== undefined && { subject }),
      ...(state !== undefined && { state }),
      ...(before !== undefined && { before }),
    })
    const page = found.slice(0, limit)
    const next = found.length > limit ? (page.at(-1)?.id ?? null) : null
    return sendJson(reply, 200, { deliveries: page.map(toDeliveryView), next })
  })
}

function getWebhookDelivery(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.get(`${DELIVERIES_PATH}/:id`, needs('jobs:read'), async (request, reply) => {
    const { delivery, attempts } = await webhooks.delivery(contextOf(request).accountId, idOf(request))
    return sendJson(reply, 200, { ...toDeliveryView(delivery), attempt_list: attempts.map(toAttemptView) })
  })
}

function replayWebhookDelivery(app: FastifyInstance, { contextOf, webhooks }: WebhookDeps): void {
  app.post(`${DELIVERIES_PATH}/:id/replay`, needs('jobs:write'), async (request, reply) =>
    sendJson(reply, 202, toDeliveryView(await webhooks.replay(contextOf(request).accountId, idOf(request)))),
  )
}

export const DELIVERY_OPERATIONS = [listWebhookDeliveries, getWebhookDelivery, replayWebhookDelivery]

function readState(text: string | undefined): DeliveryState | undefined {
  if (text === undefined) return undefined
  const state = DELIVERY_STATES.find((each) => each === text)
  if (state === undefined) throw invalidField('status', `must be one of ${DELIVERY_STATES.join(', ')}`)
  return state
}

function readLimit(text: string | undefined): number {
  const limit = text === undefined ? DEFAULT_LIMIT : Number(text)
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalidField('limit', `must be an integer from 1 to ${MAX_LIMIT}`)
}

// What requests say about webhooks. Shapes are the contract's; what it cannot say is checked here. Messages never repeat a secret.

const MAX_BODY_BYTES = 16_384

/** An empty body is an empty object. */
async function readWebhookBody(request: FastifyRequest, check: ContractCheck, schema: string): Promise<JsonObject> {
  const isEmpty = (request.raw.headers['content-length'] ?? '0') === '0' && !request.raw.headers['transfer-encoding']
  const body = isEmpty ? {} : await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
  mustBeSecret(body['secret'], 'secret')
  const problem = check(schema, body, 'the body')
  if (problem !== null) throw new ServiceError('invalid_field', problem, { details: { field: 'body' } })
  return body
}

/** Asked before the contract, which would answer with a pattern. */
export function mustBeSecret(value: JsonValue | undefined, field: string): void {
  if (typeof value === 'string') readSecret(value, field)
}

/** null: none was given. */
export function readSecret(value: JsonValue | undefined, field: string): Uint8Array | null {
  if (value === undefined) return null
  const secret = readSecretText(value as string)
  if (secret === null) throw invalidField(field, 'must be whsec_ followed by 24 to 64 bytes in base64')
  return secret
}

function readTime(value: JsonValue | undefined, field: string): Date {
  const time = new Date(value as string)
  if (Number.isNaN(time.getTime())) throw invalidField(field, 'must be a time, such as 2026-01-31T12:00:00Z')
  return time
}

// Webhooks in the words of the wire. Pure.

const MICROS_PER_USD = 1_000_000

function toWebhookView(endpoint: Endpoint) {
  const { id, url, description, events, creditsLowMicros } = endpoint
  return {
    ...{ id, url, description, events },
    status: endpoint.state,
    disabled_reason: endpoint.reason,
    disabled_at: endpoint.disabledAt?.toISOString() ?? null,
    failing_since: endpoint.failingSince?.toISOString() ?? null,
    secret_overlap_until: endpoint.previousUntil?.toISOString() ?? null,
    credits_low_usd: creditsLowMicros === null ? null : creditsLowMicros / MICROS_PER_USD,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.changedAt.toISOString(),
  }
}

/** null stays null, and what is left out is left out. */
function toMicros(usd: number | null): number | null {
  return usd === null ? null : Math.round(usd * MICROS_PER_USD)
}

function toDeliveryView(delivery: Delivery) {
  const { id, endpointId, type, subject, state, attempts } = delivery
  return {
    id,
    webhook_id: endpointId,
    type,
    job_id: subject,
    occurred_at: delivery.at.toISOString(),
    status: state,
    attempts,
    next_attempt_at: delivery.nextAt?.toISOString() ?? null,
    ended_at: delivery.endedAt?.toISOString() ?? null,
  }
}

function toAttemptView({ number, at, tookMs, outcome, status, response }: Attempt) {
  return { number, at: at.toISOString(), duration_ms: tookMs, outcome, http_status: status, response }
}
