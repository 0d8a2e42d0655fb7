/** Accepts a workflow. 201 means that the job is durably recorded and queued. */
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { readMetadata } from '../../../domain/jobs/submit/job-metadata.ts'
import type { Submit } from '../../../domain/jobs/submit/submit-job.ts'
import type { HookWish } from '../../../domain/webhooks/job-hooks.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import type { JobBytes } from '../views/job-bytes.ts'
import { API_PATH } from '../views/links.ts'
import { readJobWebhook } from './webhook-body.ts'

interface PostJobsDeps {
  readonly contextOf: ContextOf
  readonly submit: Submit
  readonly check: ContractCheck
  readonly jobBytes: JobBytes
  readonly maxBodyBytes: number
}

interface SubmitBody {
  readonly workflow: JsonValue | undefined
  readonly extraData: Readonly<Record<string, unknown>> | null
  readonly metadata: Readonly<Record<string, string>>
  readonly priority: number
  readonly webhook: HookWish | null
}

/** Named in the contract for later; a caller that relies on them must not believe that they work. */
const RESERVED_FIELDS = ['webhook_url', 'inputs']

export function postJobs(app: FastifyInstance, deps: PostJobsDeps): void {
  const { contextOf, submit, check, jobBytes, maxBodyBytes } = deps
  app.post(`${API_PATH}/jobs`, async (request, reply) => {
    const context = contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonBody(request, { maxBytes: maxBodyBytes })
    const fields = readSubmitBody(body, check)
    const { accountId, scopes, keyId, pool } = context
    const job = await submit({ accountId, scopes, keyId, pool, ...fields, idempotencyKey })
    return sendJson(reply, 201, jobBytes(job, context))
  })
}

/**
 * Checks the fields in the order of the contract. Whether the graph is valid is the domain's business; here the body is only
 * taken apart. Messages name fields and never values, because `extra_data` holds credentials.
 */
function readSubmitBody(body: JsonValue, check: ContractCheck): SubmitBody {
  if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  const extraData = readExtraData(body['extra_data'], check)
  const metadata = readMetadata(body['metadata'])
  const priority = readPriority(body['priority'], check)
  const webhook = readJobWebhook(body['webhook'], check)
  refuseReserved(body)
  return { workflow: body['workflow'], extraData, metadata, priority, webhook }
}

function readExtraData(value: JsonValue | undefined, check: ContractCheck): SubmitBody['extraData'] {
  if (value === undefined) return null
  const problem = isJsonObject(value) ? check('ExtraData', value, 'extra_data') : 'extra_data must be an object'
  const pngInfo = isJsonObject(value) ? value['extra_pnginfo'] : undefined
  const embedded = isJsonObject(pngInfo) ? pngInfo['workflow'] : undefined
  // A number that is kept as its text is an object to the schema, though not to JSON.
  const isOdd = (part: JsonValue | undefined) => part !== undefined && !isJsonObject(part)
  const odd = isOdd(pngInfo) || isOdd(embedded) ? 'extra_data.extra_pnginfo must hold an object under workflow' : null
  if (problem !== null || odd !== null) throw new ServiceError('invalid_request', (problem ?? odd) as string)
  return Object.keys(value as JsonObject).length === 0 ? null : (value as JsonObject)
}

function readPriority(value: JsonValue | undefined, check: ContractCheck): number {
  if (value === undefined) return 0
  const problem = check('Priority', value, 'priority')
  if (problem !== null) throw new ServiceError('invalid_field', problem, { details: { field: 'priority' } })
  return value as number
}

function refuseReserved(body: JsonObject): void {
  for (const field of RESERVED_FIELDS) {
    if (body[field] === undefined || body[field] === null) continue
    throw invalidField(field, 'is reserved and not supported; leave it out')
  }
}
