/**
 * The body of a call: its bytes as they came, what they say, and what tells this request apart from another with the same
 * key. What is wrong with the JSON is returned, not thrown: a call is judged by other things first.
 */
import { createHash, hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import type { JsonRecord } from '../../../domain/models/catalog/model.ts'
import type { RouterError } from '../../../domain/models/router-error.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'
import { parseModelInput } from '../../kit/model-calls.ts'

interface CallInput {
  readonly body: Buffer
  readonly input: JsonRecord | RouterError
}

// 100 MiB over a slow line; a sender that drips is cut off all the same.
const BODY_MS = 600_000
const COPIED_BYTES = 16_384

export async function readCallInput(request: IncomingMessage, maxBytes: number): Promise<CallInput> {
  const body = await readBodyBytes(request, { maxBytes, deadlineMs: BODY_MS })
  return { body, input: await parseModelInput(request, body) }
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
