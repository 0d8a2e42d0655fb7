/** What requests say about webhooks. Shapes are the contract's; what it cannot say is checked here. Messages never repeat a secret. */
import type { FastifyRequest } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { readSecretText } from '../../../../lib/standard-webhooks.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { HookWish } from '../../../domain/webhooks/job-hooks.ts'
import { USUAL_EVENTS } from '../../../domain/webhooks/webhook.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'

const MAX_BODY_BYTES = 16_384
const JOB_ENDS = USUAL_EVENTS.filter((event) => event.startsWith('job.'))

/** An empty body is an empty object. */
export async function readWebhookBody(
  request: FastifyRequest,
  check: ContractCheck,
  schema: string,
): Promise<JsonObject> {
  const isEmpty = (request.raw.headers['content-length'] ?? '0') === '0' && !request.raw.headers['transfer-encoding']
  const body = isEmpty ? {} : await readJsonBody(request, { maxBytes: MAX_BODY_BYTES })
  if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  mustBeSecret(body['secret'], 'secret')
  const problem = check(schema, body, 'the body')
  if (problem !== null) throw new ServiceError('invalid_field', problem, { details: { field: 'body' } })
  return body
}

/** Asked before the contract, which would answer with a pattern. */
function mustBeSecret(value: JsonValue | undefined, field: string): void {
  if (typeof value === 'string') readSecret(value, field)
}

/** null: none was given. */
export function readSecret(value: JsonValue | undefined, field: string): Uint8Array | null {
  if (value === undefined) return null
  const secret = readSecretText(value as string)
  if (secret === null) throw invalidField(field, 'must be whsec_ followed by 24 to 64 bytes in base64')
  return secret
}

export function readTime(value: JsonValue | undefined, field: string): Date {
  const time = new Date(value as string)
  if (Number.isNaN(time.getTime())) throw invalidField(field, 'must be a time, such as 2026-01-31T12:00:00Z')
  return time
}

/** The address that a submit brings along. */
export function readJobWebhook(value: JsonValue | undefined, check: ContractCheck): HookWish | null {
  if (value === undefined || value === null) return null
  if (isJsonObject(value)) mustBeSecret(value['secret'], 'webhook.secret')
  const problem = check('JobWebhook', value, 'webhook')
  if (problem !== null) throw new ServiceError('invalid_field', problem, { details: { field: 'webhook' } })
  const { url, events, secret } = typeof value === 'string' ? ({ url: value } as JsonObject) : (value as JsonObject)
  return {
    url: url as string,
    events: (events as readonly string[] | undefined) ?? JOB_ENDS,
    secret: readSecret(secret, 'webhook.secret'),
  }
}
