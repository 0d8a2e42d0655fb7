/**
 * Uploads by the protocol tus 1.0 (https://tus.io/protocols/resumable-upload). The sentences in quotes are its own. What arrives is
 * stored as it comes; with the last byte an upload becomes an asset, and `Upload-Asset` names it.
 */

import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { inOneChunk } from '../../../../lib/files/byte-streams.ts'
import { isUuid } from '../../../../lib/ids.ts'
import type { PerAccount } from '../../../domain/accounts/limits/tiers.ts'
import { contentTypeOf } from '../../../domain/assets/create/asset-fields.ts'
import type { UploadFields } from '../../../domain/assets/create/upload-fields.ts'
import type { ResumableUploads, UploadStanding } from '../../../domain/assets/resumable/resumable-uploads.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { freeBytes } from '../../kit/bodies/gather-body.ts'
import { readBodyBytes } from '../../kit/bodies/json-body.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH, readWireHash } from '../views/job-view.ts'

export interface ResumableUploadDeps {
  readonly contextOf: ContextOf
  readonly resumable: ResumableUploads
}

const PATH = `${API_PATH}/uploads`

/** "A successful response MUST contain the Tus-Version header." It needs no credential. */
export function getUploadProtocol(app: FastifyInstance, { maxBytes }: { readonly maxBytes: PerAccount }): void {
  app.options(PATH, { config: { ...needs('public').config, answersOptions: true } }, async (_request, reply) => {
    reply.headers({
      Allow: 'OPTIONS, POST',
      'Tus-Resumable': TUS_VERSION,
      'Tus-Version': TUS_VERSION,
      'Tus-Extension': TUS_EXTENSIONS,
      'Tus-Checksum-Algorithm': CHECKSUMS.join(','),
      ...(typeof maxBytes === 'number' && { 'Tus-Max-Size': String(maxBytes) }),
    })
    return reply.code(204).send()
  })
}

function createUpload(app: FastifyInstance, { contextOf, resumable }: ResumableUploadDeps): void {
  app.post(PATH, needs('assets:write'), async (request, reply) => {
    mustSpeakTus(request, reply)
    const { accountId, mountPrefix } = contextOf(request)
    refuseConcatenation(request)
    const lengthBytes = readCount(request, 'Upload-Length')
    const metadata = String(request.headers['upload-metadata'] ?? '')
    const fields = readUploadFields(metadata)
    using part = hasBody(request.raw) ? await readPart(request.raw) : null
    const created = await resumable.create({ accountId, lengthBytes, fields, metadata })
    const { id } = created.upload
    reply.header('Location', `${mountPrefix}${PATH}/${id}`)
    const standing =
      part === null ? created : await resumable.append({ accountId, id, offsetBytes: 0, source: part.source })
    return tell(reply.code(201), standing)
  })
}

function headUpload(app: FastifyInstance, { contextOf, resumable }: ResumableUploadDeps): void {
  app.head(`${PATH}/:id`, needs('assets:write'), async (request, reply) => {
    mustSpeakTus(request, reply)
    const standing = await resumable.find({ accountId: contextOf(request).accountId, id: idOf(request) })
    const { lengthBytes, metadata } = standing.upload
    // "The Server MUST prevent the client and/or proxies from caching the response."
    reply.headers({ 'Cache-Control': 'no-store', 'Upload-Length': String(lengthBytes) })
    if (metadata !== '') reply.header('Upload-Metadata', metadata)
    return tell(reply.code(200), standing)
  })
}

function getUpload(app: FastifyInstance, { contextOf, resumable }: ResumableUploadDeps): void {
  app.get(`${PATH}/:id`, { ...needs('assets:write'), exposeHeadRoute: false }, async (request, reply) => {
    const { accountId } = contextOf(request)
    const { upload, offsetBytes } = await resumable.find({ accountId, id: idOf(request) })
    return sendJson(reply, 200, {
      id: upload.id,
      offset: offsetBytes,
      length: upload.lengthBytes,
      expires_at: upload.expiresAt.toISOString(),
      asset_id: upload.assetId,
    })
  })
}

function appendUpload(app: FastifyInstance, { contextOf, resumable }: ResumableUploadDeps): void {
  app.patch(`${PATH}/:id`, needs('assets:write'), async (request, reply) => {
    mustSpeakTus(request, reply)
    const { accountId } = contextOf(request)
    const id = idOf(request)
    const offsetBytes = readCount(request, 'Upload-Offset')
    using part = await readPart(request.raw)
    const standing = await resumable.append({ accountId, id, offsetBytes, source: part.source })
    return tell(reply.code(204), standing)
  })
}

function deleteUpload(app: FastifyInstance, { contextOf, resumable }: ResumableUploadDeps): void {
  app.delete(`${PATH}/:id`, needs('assets:write'), async (request, reply) => {
    mustSpeakTus(request, reply)
    await resumable.terminate({ accountId: contextOf(request).accountId, id: idOf(request) })
    return reply.code(204).send()
  })
}

export const RESUMABLE_UPLOADS = [createUpload, headUpload, getUpload, appendUpload, deleteUpload] as const

function tell(reply: FastifyReply, { upload, offsetBytes }: UploadStanding): FastifyReply {
  reply.headers({ 'Upload-Offset': String(offsetBytes), 'Upload-Expires': upload.expiresAt.toUTCString() })
  if (upload.assetId !== null) reply.header('Upload-Asset', upload.assetId)
  return reply.send()
}

function idOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string }
  if (isUuid(id)) return id
  throw new ServiceError('not_found', 'there is no upload with this id, or no longer')
}

/** An extension that is not offered, and that would otherwise make an upload of nothing. */
function refuseConcatenation({ headers }: FastifyRequest): void {
  if (headers['upload-concat'] === undefined) return
  throw new ServiceError('invalid_request', 'Upload-Concat is not offered here; send the file as one upload')
}

// The words of the protocol tus 1.0 in requests: its version, its counts, and the bytes of a body with or without a checksum.

const TUS_VERSION = '1.0.0'
const TUS_EXTENSIONS = 'creation,creation-with-upload,termination,expiration,checksum'
const CHECKSUMS = ['sha1', 'sha256', 'md5'] as const
const PART = 'application/offset+octet-stream'
// Such a body is held in memory until it has been compared: nothing that was damaged on its way touches the upload.
const MAX_CHECKED_BYTES = 16 * 1024 * 1024
const CHECKED_MS = 600_000
const COUNT = /^\d{1,15}$/

/** "The server MUST respond with 412 and Tus-Version" to another version; every answer names the version. */
function mustSpeakTus(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('Tus-Resumable', TUS_VERSION)
  if (request.headers['tus-resumable'] === TUS_VERSION) return
  reply.header('Tus-Version', TUS_VERSION)
  throw new ServiceError('unsupported_version', `send Tus-Resumable: ${TUS_VERSION}; no other version is spoken here`)
}

function readCount(request: FastifyRequest, name: string): number {
  const text = request.headers[name.toLowerCase()]
  if (typeof text === 'string' && COUNT.test(text)) return Number(text)
  throw new ServiceError('invalid_request', `${name} must be a whole number of bytes`)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

interface PartBody extends Disposable {
  readonly source: AsyncIterable<Uint8Array>
}

/** The bytes of a part. With a checksum they are read and compared first. */
async function readPart(request: IncomingMessage): Promise<PartBody> {
  if (request.headers['content-type']?.trim().toLowerCase() !== PART)
    throw new ServiceError('unsupported_media_type', `send the bytes with Content-Type: ${PART}`)
  const checksum = request.headers['upload-checksum']
  if (checksum === undefined) return { source: chunksOf(request), [Symbol.dispose]() {} }
  const check = readChecksum(String(checksum))
  const bytes = await readBodyBytes(request, { maxBytes: MAX_CHECKED_BYTES, deadlineMs: CHECKED_MS })
  if (!check(bytes)) {
    freeBytes(bytes)
    throw new ServiceError('checksum_mismatch', 'the bytes are not those of Upload-Checksum; send them again')
  }
  return { source: inOneChunk(bytes), [Symbol.dispose]: () => freeBytes(bytes) }
}

function readChecksum(text: string): (bytes: Uint8Array) => boolean {
  const [name = '', sum = ''] = text.trim().split(/ +/)
  const algorithm = CHECKSUMS.find((known) => known === name)
  if (algorithm === undefined || sum === '')
    throw new ServiceError(
      'invalid_request',
      `Upload-Checksum must be one of ${CHECKSUMS.join(', ')} and a sum in base64`,
    )
  const expected = Buffer.from(sum, 'base64')
  return (bytes) => {
    const found = createHash(algorithm).update(bytes).digest()
    return found.length === expected.length && timingSafeEqual(found, expected)
  }
}

/** Whoever stops in the middle leaves the connection alone: an answer has still to go out on it. */
async function* chunksOf(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) yield chunk as Buffer
  } catch (cause) {
    const message = 'the request ended before its body was complete; what came of it is kept'
    throw new ServiceError('invalid_request', message, { cause })
  }
}

// What a client says of a file in `Upload-Metadata`: pairs with commas between, each a name and, behind a space, its value in base64.
// The names of our own form count, and beside them those that clients of the protocol use by habit.

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
