/**
 * The body of a node's request, and what of it decides model and price. Of JSON the bytes go on as they came, with every digit of
 * a seed: no name is in it twice, so every reader finds the same in it. A form is written anew from what was read of it, because
 * readers of forms differ in far more: names given twice, encodings, what stands around the parts.
 */
import type { IncomingMessage } from 'node:http'
import { type FormPart, writeMultipart } from '../../../lib/outbound/write-multipart.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Json, JsonRecord } from '../../domain/models/catalog/model.ts'
import type { PartnerBody } from '../../domain/models/partner/partner-nodes.ts'
import type { RouterError } from '../../domain/models/router-error.ts'
import { FormReader } from '../kit/bodies/form-reader.ts'
import { freeBytes } from '../kit/bodies/gather-body.ts'
import { readBodyBytes } from '../kit/bodies/json-body.ts'
import {
  FORM_AROUND_MAX_BYTES,
  PART_HEAD_MAX_BYTES,
  readBoundary,
  readPartHead,
  toFormRefusal,
} from '../kit/bodies/multipart.ts'
import { parseModelInput, repeated } from '../kit/model-calls.ts'

interface ReadOptions {
  readonly maxBytes: number
  readonly isForm: boolean
}

// 100 MiB over a slow line; a sender that drips is cut off all the same.
const BODY_MS = 600_000
const MAX_PARTS = 200
const MAX_FIELD_BYTES = 1024 * 1024
const CONTENT_TYPE = /^content-type:[ \t]*(\S[^\r\n]*)$/im

/** Throws ServiceError. */
export async function readNodeBody(request: IncomingMessage, { maxBytes, isForm }: ReadOptions): Promise<PartnerBody> {
  const boundary = isForm ? readBoundary(request.headers['content-type'] ?? '') : null
  const bytes = await readBodyBytes(request, { maxBytes, deadlineMs: BODY_MS })
  if (boundary === null)
    return { bytes, contentType: 'application/json', fields: await parseModelInput(request, bytes), divider: null }
  const parts = await readForm(bytes, boundary)
  const form = writeMultipart(parts)
  const written = Buffer.concat(await Array.fromAsync(form.body))
  freeBytes(bytes)
  return { bytes: written, contentType: form.headers['content-type'], fields: toFields(parts), divider: form.boundary }
}

async function readForm(bytes: Buffer, boundary: string): Promise<FormPart[]> {
  const reader = new FormReader([bytes].values() as unknown as AsyncIterator<Buffer>, boundary)
  const parts: FormPart[] = []
  try {
    await reader.skipPreamble(FORM_AROUND_MAX_BYTES)
    for (;;) {
      const head = await reader.nextHead(PART_HEAD_MAX_BYTES)
      if (head === null) return parts
      if (parts.length >= MAX_PARTS)
        throw new ServiceError('payload_too_large', `the form has more than ${MAX_PARTS} parts`)
      const { name, fileName } = readPartHead(head)
      const contentType = CONTENT_TYPE.exec(head)?.[1]
      const content = await reader.readBody(fileName === null ? MAX_FIELD_BYTES : bytes.length)
      parts.push(
        fileName === null ? toText(name, content, contentType) : toFile(name, content, { fileName, contentType }),
      )
    }
  } catch (error) {
    throw toFormRefusal(error)
  }
}

/** What a text says is read as UTF-8, whatever its head says of it. */
function toText(name: string, content: Buffer, contentType?: string): FormPart {
  const isTyped = contentType !== undefined && !/^text\//i.test(contentType)
  return { name, value: content.toString(), ...(isTyped && { contentType }) }
}

function toFile(
  name: string,
  content: Buffer,
  head: { readonly fileName: string; readonly contentType?: string },
): FormPart {
  const { fileName: filename, contentType = 'application/octet-stream' } = head
  return { name, filename, contentType, sizeBytes: content.length, read: () => [content] }
}

/** Files may share a name, and texts one that ends like a list's; each file counts as an object, which no price can read. */
function toFields(parts: readonly FormPart[]): JsonRecord | RouterError {
  const byName = Map.groupBy(parts, ({ name }) => name)
  const fields: [string, Json][] = []
  for (const [name, same] of byName) {
    const texts = same.filter((part) => 'value' in part)
    const isList = name.endsWith('[]') || texts.length === 0
    if (same.length > 1 && !(isList && (texts.length === 0 || texts.length === same.length)))
      return repeated(['body', name])
    const values = same.map((part) => ('value' in part ? part.value : { file_name: part.filename }))
    fields.push([name, values.length === 1 ? values[0] : values])
  }
  return Object.fromEntries(fields)
}
