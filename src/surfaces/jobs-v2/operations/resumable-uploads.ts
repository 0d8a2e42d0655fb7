/**
 * Uploads by the protocol tus 1.0 (https://tus.io/protocols/resumable-upload). The sentences in quotes are its own. What arrives is
 * stored as it comes; with the last byte an upload becomes an asset, and `Upload-Asset` names it.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import type { PerAccount } from '../../../domain/accounts/limits/tiers.ts'
import type { ResumableUploads, UploadStanding } from '../../../domain/assets/resumable/resumable-uploads.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import {
  CHECKSUMS,
  hasBody,
  mustSpeakTus,
  readCount,
  readPart,
  TUS_EXTENSIONS,
  TUS_VERSION,
} from '../uploads/tus-request.ts'
import { readUploadFields } from '../uploads/upload-metadata.ts'
import { API_PATH } from '../views/links.ts'

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
