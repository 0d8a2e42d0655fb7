/** The webhooks of an account: added, changed, tried out and removed. A secret is shown only in the answer that made it. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toSecretText } from '../../../../lib/standard-webhooks.ts'
import type { Webhooks } from '../../../domain/webhooks/manage-webhooks.ts'
import { type Endpoint, USUAL_EVENTS } from '../../../domain/webhooks/webhook.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/rights.ts'
import { readParameters } from '../../kit/request-url.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/links.ts'
import { toMicros, toWebhookView } from '../views/webhook-view.ts'
import { readSecret, readTime, readWebhookBody } from './webhook-body.ts'

export interface WebhookDeps {
  readonly contextOf: ContextOf
  readonly webhooks: Webhooks
  readonly check: ContractCheck
}

export const WEBHOOKS_PATH = `${API_PATH}/webhooks`
const WEBHOOK_ROUTE = `${WEBHOOKS_PATH}/:id`
const DEFAULT_LOW_USD = 5
const DEFAULT_OVERLAP_SECONDS = 86_400

export function idOf(request: FastifyRequest): string {
  return (request.params as { readonly id: string }).id
}

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
  app.get(`${WEBHOOKS_PATH}/secret`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    // A caller that may only read jobs must not be able to forge signatures of the service.
    return sendJson(reply, 200, { secret: toSecretText(webhooks.commonSecret(context.accountId)) })
  })
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
