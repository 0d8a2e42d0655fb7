/**
 * The body of a call: its bytes as they came, what they say, and what tells this request apart from another with the same
 * key. What is wrong with the JSON is returned, not thrown: a call is judged by other things first.
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { isRecord, type JsonRecord } from '../../../domain/models/catalog/model.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { type JsonReading, parseBody, readBodyBytes } from '../../kit/bodies/json-body.ts'

interface CallInput {
  readonly body: Buffer
  readonly input: JsonRecord | RouterError
}

// 100 MiB over a slow line; a sender that drips is cut off all the same.
const BODY_MS = 600_000

// Far above any input: schemas, prices and providers walk over all of it without a pause.
const PLAIN: JsonReading<number> = { parse: JSON.parse, readNumber: Number, maxValues: 50_000 }

export async function readCallInput(request: IncomingMessage, maxBytes: number): Promise<CallInput> {
  const body = await readBodyBytes(request, { maxBytes, deadlineMs: BODY_MS })
  return { body, input: await parseInput(request, body) }
}

async function parseInput(request: IncomingMessage, body: Buffer): Promise<JsonRecord | RouterError> {
  try {
    const value: unknown = await parseBody(request, body, PLAIN)
    return isRecord(value) ? value : new RouterError('malformed', 'the body must be a JSON object')
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const refusal = error.refusal === 'payload_too_large' ? 'too_large' : 'malformed'
    return new RouterError(refusal, error.message, { cause: error })
  }
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
  return createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest('base64')
}
