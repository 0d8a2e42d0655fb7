/** What the surfaces that run models share: reading an input, and the end of a call as a result or a refusal. */
import { createHash, hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { JsonRepeatError } from '../../../lib/json/read-json-steps.ts'
import { readBudgetTag } from '../../domain/credits/budgets/budget.ts'
import { ServiceError } from '../../domain/errors.ts'
import { readIdempotencyKey } from '../../domain/idempotency/idempotency-key.ts'
import type { CallEnd, CallResult } from '../../domain/models/calls/call-store.ts'
import type { RunAnswer } from '../../domain/models/calls/run-call.ts'
import { isRecord, type JsonRecord } from '../../domain/models/catalog/model.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { type JsonReading, parseBody } from './bodies/json-body.ts'

// Far above any input: schemas, prices and providers walk over all of it without a pause. A member that occurs twice is refused:
// the provider gets the bytes, and may take the other one than the price did.
const PLAIN: JsonReading<number> = { parse: null, readNumber: Number, maxValues: 50_000 }
const SHOWN_LENGTH = 128
const COPIED_BYTES = 16_384

/** What is wrong with the JSON is returned, not thrown: a call is judged by other things first. */
export async function parseModelInput(request: IncomingMessage, body: Buffer): Promise<JsonRecord | RouterError> {
  try {
    const value: unknown = await parseBody(request, body, PLAIN)
    return isRecord(value) ? value : new RouterError('malformed', 'the body must be a JSON object')
  } catch (error) {
    if (error instanceof JsonRepeatError) return repeated(['body', ...error.path])
    if (!(error instanceof ServiceError)) throw error
    const refusal = error.refusal === 'payload_too_large' ? 'too_large' : 'malformed'
    return new RouterError(refusal, error.message, { cause: error })
  }
}

/** What is given twice is neither priced nor sent: nobody can say which of the two counts. */
export function repeated(where: readonly (string | number)[]): RouterError {
  const loc = where.map((step) => (typeof step === 'string' ? step.slice(0, SHOWN_LENGTH) : step))
  const failure = { loc, msg: 'is given more than once; give it once', type: 'value_error' }
  return new RouterError('invalid_fields', 'the input gives something more than once', { failures: [failure] })
}

/** What the caller calls this call, for budgets. */
export function readCallTag(headers: IncomingMessage['headers']): string | null {
  return readBudgetTag(headers['x-service-tag'] ?? headers['x-comfy-tag'])
}

/** Throws malformed. */
export function readKey(request: IncomingMessage): string | null {
  const header = request.headers['idempotency-key'] as string | undefined
  if (header === undefined) return null
  // Several are joined by commas. The distinct form is made for all headers at once and costs as much as they did.
  return readIdempotencyKey(header.includes(',') ? request.headersDistinct['idempotency-key'] : [header])
}

/** Method, path with query, and body. */
export function fingerprintOf(request: IncomingMessage, body: Buffer): string {
  const head = Buffer.from(`${request.method} ${request.url}\n`)
  // In one go where the copy costs less than a hash that is kept between two updates.
  if (body.length <= COPIED_BYTES) return hash('sha256', Buffer.concat([head, body]), 'base64')
  return createHash('sha256').update(head).update(body).digest('base64')
}

interface Ended {
  readonly end: CallEnd
  readonly isReplay: boolean
  readonly spend: RunAnswer['spend']
}

/** Throws RouterError. */
export function mustBeResult({ end, isReplay, spend }: Ended): CallResult {
  if (end.kind === 'result') return end.result
  const { refusal, message, upstreamStatus, failures, retryAfterSeconds = null } = end.refusal
  throw new RouterError(refusal, message, {
    upstreamStatus,
    retryAfterSeconds,
    isReplay,
    spend,
    ...(failures === null ? {} : { failures }),
  })
}
