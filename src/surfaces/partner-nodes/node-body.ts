/**
 * The body of a node's request: its bytes as they came, and what of it decides model and price. Of a form that are its text
 * fields; files in it are only passed on.
 */
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../domain/errors.ts'
import type { Json, JsonRecord } from '../../domain/models/catalog/model.ts'
import type { PartnerBody } from '../../domain/models/partner/partner-nodes.ts'
import { FormReader } from '../kit/bodies/form-reader.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import {
  FORM_AROUND_MAX_BYTES,
  PART_HEAD_MAX_BYTES,
  readBoundary,
  readPartHead,
  toFormRefusal,
} from '../kit/bodies/multipart.ts'
import { parseModelInput } from '../kit/model-calls.ts'

interface ReadOptions {
  readonly maxBytes: number
  readonly isForm: boolean
}

// 100 MiB over a slow line; a sender that drips is cut off all the same.
const BODY_MS = 600_000
const MAX_PARTS = 200
const MAX_FIELD_BYTES = 1024 * 1024

/** Throws ServiceError. */
export async function readNodeBody(request: IncomingMessage, { maxBytes, isForm }: ReadOptions): Promise<PartnerBody> {
  const contentType = request.headers['content-type'] ?? 'application/json'
  const boundary = isForm ? readBoundary(contentType) : null
  const bytes = await readBodyBytes(request, { maxBytes, deadlineMs: BODY_MS })
  if (boundary === null) {
    return { bytes, contentType: 'application/json', fields: await parseModelInput(request, bytes), divider: null }
  }
  return { bytes, contentType, fields: await readForm(bytes, boundary), divider: boundary }
}

/** A field that comes several times is a list; a file counts as its name. */
async function readForm(bytes: Buffer, boundary: string): Promise<JsonRecord> {
  const reader = new FormReader([bytes].values() as unknown as AsyncIterator<Buffer>, boundary)
  const fields = new Map<string, Json[]>()
  try {
    await reader.skipPreamble(FORM_AROUND_MAX_BYTES)
    for (let parts = 0; ; parts += 1) {
      const head = await reader.nextHead(PART_HEAD_MAX_BYTES)
      if (head === null) break
      if (parts >= MAX_PARTS) throw new ServiceError('payload_too_large', `the form has more than ${MAX_PARTS} parts`)
      const { name, fileName } = readPartHead(head)
      const value = fileName ?? (await reader.readBody(MAX_FIELD_BYTES)).toString()
      if (fileName !== null) await reader.readBody(bytes.length)
      fields.set(name, [...(fields.get(name) ?? []), value])
    }
  } catch (error) {
    throw toFormRefusal(error)
  }
  return Object.fromEntries([...fields].map(([name, values]) => [name, values.length === 1 ? values[0] : values]))
}
