/** What the surfaces that run models share: reading an input, and the end of a call as a result or a refusal. */
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../domain/errors.ts'
import type { CallEnd, CallResult } from '../../domain/models/calls/call-store.ts'
import type { RunAnswer } from '../../domain/models/calls/run-call.ts'
import { isRecord, type JsonRecord } from '../../domain/models/catalog/model.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { type JsonReading, parseBody } from './bodies/json-body.ts'

// Far above any input: schemas, prices and providers walk over all of it without a pause.
const PLAIN: JsonReading<number> = { parse: JSON.parse, readNumber: Number, maxValues: 50_000 }

/** What is wrong with the JSON is returned, not thrown: a call is judged by other things first. */
export async function parseModelInput(request: IncomingMessage, body: Buffer): Promise<JsonRecord | RouterError> {
  try {
    const value: unknown = await parseBody(request, body, PLAIN)
    return isRecord(value) ? value : new RouterError('malformed', 'the body must be a JSON object')
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const refusal = error.refusal === 'payload_too_large' ? 'too_large' : 'malformed'
    return new RouterError(refusal, error.message, { cause: error })
  }
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
