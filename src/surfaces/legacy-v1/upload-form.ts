/**
 * An upload form as clients of this surface send it: one file named `image` and a few short fields, in any order. The file
 * streams to whoever takes it; everything around it is bounded.
 */
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../domain/errors.ts'
import { FormError, FormReader } from '../kit/bodies/form-reader.ts'
import { openFormChunks, readBoundary, readPartHead } from '../kit/bodies/multipart.ts'

export interface UploadForm<Taken> {
  readonly fileName: string
  readonly file: Taken
  readonly fields: ReadonlyMap<string, string>
}

export interface FormOptions<Taken> {
  /** Reads the file to its end. */
  take(bytes: AsyncIterable<Uint8Array>): Promise<Taken>
  /** Gives back what was taken, when the form turns out to be no good after all. */
  drop(taken: Taken): Promise<void>
}

const FILE_FIELD = 'image'
const MAX_PARTS = 32
const MAX_FIELD_BYTES = 64 * 1024
const MAX_HEAD_BYTES = 16 * 1024
const MAX_AROUND_BYTES = 64 * 1024

/** Throws `invalid_field`, `invalid_request` or `payload_too_large`. */
export async function readUploadForm<Taken>(
  request: IncomingMessage,
  options: FormOptions<Taken>,
): Promise<UploadForm<Taken>> {
  const reader = new FormReader(openFormChunks(request), readBoundary(request.headers['content-type'] ?? ''))
  let taken: { readonly fileName: string; readonly file: Taken } | null = null
  try {
    const fields = new Map<string, string>()
    await reader.skipPreamble(MAX_AROUND_BYTES)
    for (let count = 0; ; count++) {
      const head = await reader.nextHead(MAX_HEAD_BYTES)
      if (head === null) break
      if (count >= MAX_PARTS) throw invalid('the form has too many parts')
      const { name, fileName } = readPartHead(head)
      if (name === FILE_FIELD && fileName !== null && taken === null) {
        taken = { fileName, file: await options.take(reader.streamBody()) }
      } else if (fileName !== null) throw invalid(`only one file is expected, named ${FILE_FIELD}`)
      else fields.set(name, (await reader.readBody(MAX_FIELD_BYTES)).toString('utf8'))
    }
    await reader.skipEpilogue(MAX_AROUND_BYTES)
    if (taken === null) throw invalid(`the file ${FILE_FIELD} is missing`)
    return { ...taken, fields }
  } catch (error) {
    reader.close()
    if (taken !== null) await options.drop(taken.file)
    throw toRefusal(error)
  }
}

function toRefusal(error: unknown): unknown {
  if (!(error instanceof FormError)) return error
  if (error.problem === 'too_large') return new ServiceError('payload_too_large', error.message)
  return new ServiceError('invalid_request', error.message)
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_field', message, { details: { field: FILE_FIELD } })
}
