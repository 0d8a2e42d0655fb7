/**
 * What a client says of a file in `Upload-Metadata`: pairs with commas between, each a name and, behind a space, its value in base64.
 * The names of our own form count, and beside them those that clients of the protocol use by habit.
 */
import { contentTypeOf } from '../../../domain/assets/create/asset-fields.ts'
import type { UploadFields } from '../../../domain/assets/create/upload-fields.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readWireHash } from '../views/asset-view.ts'

const PAIR = /^([\x21-\x2b\x2d-\x7e]+)(?: ([A-Za-z0-9+/]*={0,2}))?$/

/** Throws invalid_request and invalid_field. */
export function readUploadFields(metadata: string): UploadFields {
  const values = readPairs(metadata)
  const filePath = values.get('file_path') ?? values.get('filename') ?? values.get('name')
  if (filePath === undefined) throw invalidField('file_path', 'is missing in Upload-Metadata; filename does as well')
  const contentType = values.get('content_type') ?? values.get('filetype') ?? values.get('type')
  return {
    filePath,
    contentType: contentType === undefined || contentType === '' ? contentTypeOf(filePath) : contentType,
    expectedHash: readExpectedHash(values.get('expected_hash')),
    tags: readTagList(values.get('tags')),
    expiresInSeconds: readSeconds(values.get('expires_in')),
  }
}

function readPairs(metadata: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  if (metadata.trim() === '') return values
  for (const pair of metadata.split(',')) {
    const [, name, encoded = ''] = PAIR.exec(pair.trim()) ?? []
    if (name === undefined) throw malformed('has a pair that is not a name, a space and a value in base64')
    if (values.has(name)) throw malformed(`names ${name} twice`)
    const value = Buffer.from(encoded, 'base64')
    values.set(name, value.toString())
  }
  return values
}

function readExpectedHash(text: string | undefined): string | null {
  if (text === undefined) return null
  const hash = readWireHash(text)
  if (hash === null) throw invalidField('expected_hash', 'must be blake3: followed by 64 hexadecimal digits')
  return hash
}

function readTagList(text: string | undefined): readonly string[] {
  if (text === undefined) return []
  const tags = parse(text)
  if (Array.isArray(tags) && tags.every((tag) => typeof tag === 'string')) return tags
  throw invalidField('tags', 'must be a JSON list of texts')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function readSeconds(text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^\d{1,9}$/.test(text)) throw invalidField('expires_in', 'must be a whole number of seconds')
  return Number(text)
}

function malformed(problem: string): ServiceError {
  return new ServiceError('invalid_request', `Upload-Metadata ${problem}`)
}
