/**
 * A multipart form with some short fields and ONE file, in any order. The file's bytes stream to where they belong; nothing is
 * gathered but the bounded fields. The file ends only when the whole form has ended well, so a form that is cut off fails the
 * reader of the file, and all fields are known when the file has ended.
 */
import type { IncomingMessage } from 'node:http'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { FormError, FormReader } from './form-reader.ts'

interface MultipartOptions {
  /** The name of the file part. */
  readonly fileField: string
  /** Fields that may come more than once. */
  readonly repeatable: readonly string[]
  readonly maxFields: number
  readonly maxFieldBytes: number
}

export interface MultipartForm {
  /** By name: at first what came before the file, and all of them once the file has ended. */
  readonly fields: ReadonlyMap<string, readonly string[]>
  /** As its sender calls it; null: it does not. */
  readonly fileName: string | null
  /** To be read once. Giving up in the middle abandons the form. */
  readonly file: AsyncIterable<Uint8Array>
  /** To be called when the file will not be read: the rest of the request is then left alone. */
  abandon(): void
}

/** What a part says of itself. */
interface PartHead {
  readonly name: string
  /** null for a part that is no file; '' for a file without a name. */
  readonly fileName: string | null
}

export const PART_HEAD_MAX_BYTES = 16 * 1024
// No client of ours sends anything around the parts; the standard allows it.
export const FORM_AROUND_MAX_BYTES = 64 * 1024
const MAX_BOUNDARY_LENGTH = 200

/** Resolves when the file part begins. Refuses with `invalid_field`, `invalid_request` or `payload_too_large`. */
export async function readMultipart(request: IncomingMessage, options: MultipartOptions): Promise<MultipartForm> {
  const reader = new FormReader(openFormChunks(request), readBoundary(request.headers['content-type'] ?? ''))
  try {
    await reader.skipPreamble(FORM_AROUND_MAX_BYTES)
    const fields = new Map<string, string[]>()
    const file = await readFields(reader, fields, options)
    if (file === null) throw invalid(options.fileField, 'is missing')
    const { fileName } = file
    return { fields, fileName, file: readFile(reader, fields, options), abandon: () => reader.close() }
  } catch (error) {
    reader.close()
    throw toFormRefusal(error)
  }
}

/** The request's bytes. Whoever stops in the middle leaves the connection alone: an answer has still to go out on it. */
export function openFormChunks(request: IncomingMessage): AsyncIterator<Buffer> {
  const chunks = request.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]()
  return {
    async next() {
      try {
        return (await chunks.next()) as IteratorResult<Buffer>
      } catch {
        throw new FormError('incomplete', 'the request ended before the form was complete')
      }
    },
    async return() {
      await chunks.return?.()
      return { done: true, value: undefined }
    },
  }
}

/** The head of the file at its beginning, null at the end of the form. */
async function readFields(
  reader: FormReader,
  fields: Map<string, string[]>,
  options: MultipartOptions,
): Promise<PartHead | null> {
  const count = () => fields.values().reduce((sum, values) => sum + values.length, 0)
  for (;;) {
    const head = await nextPart(reader, options)
    if (head === null) return null
    if (head.isFile) {
      if (head.name !== options.fileField) throw invalid(head.name, 'is not expected as a file part')
      return head
    }
    if (count() >= options.maxFields) throw invalid(options.fileField, 'comes with too many other parts')
    addField(fields, head.name, await readField(reader, head.name, options), options)
  }
}

async function readField(reader: FormReader, name: string, { maxFieldBytes }: MultipartOptions): Promise<string> {
  try {
    return (await reader.readBody(maxFieldBytes)).toString('utf8')
  } catch (error) {
    const isTooLarge = error instanceof FormError && error.problem === 'too_large'
    throw isTooLarge ? invalid(name, `must have at most ${maxFieldBytes} bytes`) : error
  }
}

async function* readFile(
  reader: FormReader,
  fields: Map<string, string[]>,
  options: MultipartOptions,
): AsyncGenerator<Uint8Array> {
  try {
    yield* reader.streamBody()
    if ((await readFields(reader, fields, options)) !== null) throw invalid(options.fileField, 'may be sent only once')
    await reader.skipEpilogue(FORM_AROUND_MAX_BYTES)
  } catch (error) {
    throw toFormRefusal(error)
  } finally {
    reader.close()
  }
}

async function nextPart(
  reader: FormReader,
  { fileField }: MultipartOptions,
): Promise<(PartHead & { readonly isFile: boolean }) | null> {
  const head = await reader.nextHead(PART_HEAD_MAX_BYTES)
  if (head === null) return null
  const { name, fileName } = readPartHead(head)
  // A part with a file name is a file; so is the file part, should it come without one.
  return { name, fileName, isFile: name === fileField || fileName !== null }
}

/** Throws `invalid_request` for a part without a name. */
export function readPartHead(head: string): PartHead {
  const disposition = /^content-disposition:[ \t]*form-data[ \t]*(;.*)$/im.exec(head)?.[1] ?? ''
  const name = readParameter(disposition, 'name') ?? ''
  if (name === '') throw malformed('a part of the form has no name')
  return { name, fileName: readExtended(disposition) ?? readParameter(disposition, 'filename') }
}

function readParameter(disposition: string, name: string): string | null {
  const found = new RegExp(`;[ \\t]*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, 'i').exec(disposition)
  return found?.[1]?.replaceAll(/\\(.)/g, '$1') ?? found?.[2] ?? null
}

/** `filename*=UTF-8''…`: some clients send names beyond ASCII so. */
function readExtended(disposition: string): string | null {
  const encoded = /;[ \t]*filename\*=utf-8''([^;\s]+)/i.exec(disposition)?.[1]
  if (encoded === undefined) return null
  try {
    return decodeURIComponent(encoded)
  } catch {
    return null
  }
}

export function readBoundary(contentType: string): string {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) throw notMultipart('the body must be multipart/form-data')
  const found = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(contentType)
  const boundary = found?.[1] ?? found?.[2] ?? ''
  if (boundary.length === 0 || boundary.length > MAX_BOUNDARY_LENGTH)
    throw notMultipart('the Content-Type must name a boundary')
  return boundary
}

function addField(fields: Map<string, string[]>, name: string, value: string, options: MultipartOptions): void {
  const known = fields.get(name)
  if (known === undefined) fields.set(name, [value])
  else if (options.repeatable.includes(name)) known.push(value)
  else throw invalid(name, 'may be sent only once')
}

/** What the reader of a form threw, as a refusal; anything else as it is. */
export function toFormRefusal(error: unknown): unknown {
  if (!(error instanceof FormError)) return error
  if (error.problem === 'too_large') return new ServiceError('payload_too_large', error.message)
  return malformed(error.message)
}

const SHOWN_NAME_LENGTH = 64

/** The name of a part is the sender's own text, of any length. */
function invalid(field: string, problem: string): ServiceError {
  return invalidField(field.slice(0, SHOWN_NAME_LENGTH), problem)
}

function notMultipart(message: string): ServiceError {
  return new ServiceError('invalid_field', message)
}

function malformed(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}
