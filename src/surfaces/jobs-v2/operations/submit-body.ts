/**
 * The fields of a submit, in the order of the contract. Whether the graph is valid is the domain's business; here the body is only
 * taken apart. Messages name fields and never values, because `extra_data` holds credentials.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type { ReuseMode } from '../../../domain/jobs/reuse/result-key.ts'
import { readMetadata } from '../../../domain/jobs/submit/job-metadata.ts'
import type { HookWish } from '../../../domain/webhooks/job-hooks.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { readJobWebhook } from './webhook-body.ts'

interface SubmitBody {
  readonly workflow: JsonValue | undefined
  readonly extraData: Readonly<Record<string, unknown>> | null
  readonly metadata: Readonly<Record<string, string>>
  readonly priority: number
  readonly webhook: HookWish | null
  /** null: as the account says. */
  readonly reuse: ReuseMode | null
}

/** Named in the contract for later; a caller that relies on them must not believe that they work. */
const RESERVED_FIELDS = ['webhook_url', 'inputs']

export function mustBeObject(body: JsonValue): JsonObject {
  if (isJsonObject(body)) return body
  throw new ServiceError('invalid_request', 'the body must be a JSON object')
}

/** `onRefusal`: called for each invalid field, which is then treated as absent; left out: the first one is thrown. */
export function readSubmitBody(
  body: JsonObject,
  check: ContractCheck,
  onRefusal: (refusal: ServiceError) => void = (refusal) => {
    throw refusal
  },
): SubmitBody {
  function read<Value>(from: () => Value, otherwise: Value): Value {
    try {
      return from()
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      onRefusal(error)
      return otherwise
    }
  }
  const extraData = read(() => readExtraData(body['extra_data'], check), null)
  const metadata = read(() => readMetadata(body['metadata']), {})
  const priority = read(() => readPriority(body['priority'], check), 0)
  const webhook = read(() => readJobWebhook(body['webhook'], check), null)
  const reuse = read(() => readReuse(body['reuse'], check), null)
  read(() => refuseReserved(body), undefined)
  return { workflow: body['workflow'], extraData, metadata, priority, webhook, reuse }
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

function readReuse(value: JsonValue | undefined, check: ContractCheck): ReuseMode | null {
  if (value === undefined) return null
  if (check('ReuseMode', value, 'reuse') !== null) throw invalidField('reuse', 'must be exact or none')
  return value as ReuseMode
}

function refuseReserved(body: JsonObject): void {
  for (const field of RESERVED_FIELDS) {
    if (body[field] === undefined || body[field] === null) continue
    throw invalidField(field, 'is reserved and not supported; leave it out')
  }
}
