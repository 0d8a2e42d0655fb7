/** The members of a `POST /prompt` body, read and checked one by one. The graph itself is validated elsewhere. */

import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { PRIORITY_LIMIT } from '../../../domain/jobs/submit/submit-job.ts'
import { INVALID_PROMPT_ID, NO_PROMPT, type PromptRefusal } from './prompt-errors.ts'
import { CREDENTIAL } from './prompt-extra-data.ts'

export interface PromptFields {
  readonly workflow: JsonValue
  readonly id: string | null
  readonly clientId: string | null
  /** null: the next number of the account's counter. */
  readonly number: number | null
  readonly isFront: boolean
  readonly targets: readonly string[] | null
  readonly extraData: JsonObject
  readonly workflowId: string | null
}

type PromptReading =
  | { readonly fields: PromptFields; readonly refusal: null }
  | { readonly fields: null; readonly refusal: PromptRefusal }

const MAX_CLIENT_ID_LENGTH = 256
const MAX_TARGETS = 20_000
const MAX_NAME_LENGTH = 64
/** A float as clients write one into a text. */
const FLOAT = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

export function readPrompt(body: JsonObject): PromptReading {
  const workflow = member(body, 'prompt')
  if (workflow === undefined) return { fields: null, refusal: NO_PROMPT }
  const id = member(body, 'prompt_id') ?? null
  if (id !== null && (typeof id !== 'string' || !isUuid(id))) return { fields: null, refusal: INVALID_PROMPT_ID }
  const extraData = readObject(member(body, 'extra_data'), 'extra_data')
  checkExtraData(extraData)
  const clientId = member(body, 'client_id') ?? member(extraData, 'client_id') ?? null
  const fields: PromptFields = {
    workflow,
    id,
    // The same rule as for the id of a socket, so that the two are equal.
    clientId: typeof clientId === 'string' && clientId.length <= MAX_CLIENT_ID_LENGTH ? clientId.toWellFormed() : null,
    number: readNumber(member(body, 'number')),
    isFront: isTruthy(member(body, 'front')),
    targets: readTargets(member(body, 'partial_execution_targets')),
    extraData,
    workflowId: readWorkflowId(body, extraData),
  }
  return { fields, refusal: null }
}

/** Only own members: `constructor` and the like are inherited by every object. */
function member(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function readObject(value: JsonValue | undefined, name: string): JsonObject {
  if (value === undefined || value === null) return {}
  if (!isJsonObject(value)) throw invalid(`${name} must be an object`)
  return value
}

function checkExtraData(extraData: JsonObject): void {
  readObject(member(extraData, 'extra_pnginfo'), 'extra_data.extra_pnginfo')
  for (const [name, value] of Object.entries(extraData)) {
    if (!CREDENTIAL.test(name) || typeof value === 'string' || value === null) continue
    throw invalid(`extra_data.${name.slice(0, MAX_NAME_LENGTH)} must be a text`)
  }
}

function readNumber(value: JsonValue | undefined): number | null {
  if (value === undefined || value === null) return null
  const number = toNumber(value)
  if (number === null || !Number.isFinite(number)) throw invalid('number must be a number')
  return number
}

function toNumber(value: JsonValue): number | null {
  if (value instanceof NumberText) return value.value
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
  if (typeof value === 'string') return FLOAT.test(value) ? Number(value) : null
  return typeof value === 'boolean' ? Number(value) : null
}

/** As Python sees it: clients send `true`, `1` and `"true"` alike. */
function isTruthy(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== false && value !== 0 && value !== ''
}

function readTargets(value: JsonValue | undefined): readonly string[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value) || value.length > MAX_TARGETS)
    throw invalid('partial_execution_targets must be a list of node ids')
  return value.map((id) => {
    if (typeof id === 'string') return id
    throw invalid('partial_execution_targets must be a list of node ids')
  })
}

function readWorkflowId(body: JsonObject, extraData: JsonObject): string | null {
  const pngInfo = member(extraData, 'extra_pnginfo')
  const saved = isJsonObject(pngInfo) ? member(pngInfo, 'workflow') : undefined
  const id = member(body, 'workflow_id') ?? (isJsonObject(saved) ? member(saved, 'id') : undefined)
  return typeof id === 'string' && id.length <= MAX_CLIENT_ID_LENGTH ? id : null
}

/** The text of a number as Python writes a float: a caller's own number always comes back with a point. */
export function toFloatText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value)
}

/** Lower numbers run first here, higher priorities run first in the queue. */
export function toPriority(number: number): number {
  return Math.min(PRIORITY_LIMIT, Math.max(-PRIORITY_LIMIT, Math.round(-number))) || 0
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}
