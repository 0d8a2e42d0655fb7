/**
 * Uploads that clients send to the storage themselves, part by part. What names an upload is sealed and long, so it travels in
 * bodies and never in an address.
 */
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { SentPart } from '../../../domain/assets/blob-store.ts'
import {
  type DirectUploadActions,
  MAX_SIGNED_AT_ONCE,
  type SignedPart,
} from '../../../domain/assets/create/direct-upload.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH, type ContentLinks, readWireHash, toAssetView, toLinked } from '../views/job-view.ts'
import { readAssetBody } from './assets.ts'

export interface DirectUploadDeps {
  readonly contextOf: ContextOf
  readonly contentLinks: ContentLinks
  /** null: every upload comes through this service. */
  readonly directUploads: DirectUploadActions | null
}

const PATH = `${API_PATH}/assets/uploads`
// Ten thousand parts with their tags, and what names the upload.
const MAX_COMPLETION_BYTES = 2 * 1024 * 1024
const ETAG = /^[\x21-\x7e]{1,256}$/

function beginDirectUpload(app: FastifyInstance, { contextOf, directUploads }: DirectUploadDeps): void {
  app.post(PATH, needs('assets:write'), async (request, reply) => {
    const { accountId } = contextOf(request)
    const actions = mustBeOffered(directUploads)
    const body = await readAssetBody(request)
    const sizeBytes = body.member('size_bytes')
    if (typeof sizeBytes !== 'number') throw invalidField('size_bytes', 'must be a positive whole number')
    const fields = {
      filePath: required('file_path', body.text('file_path')),
      contentType: required('content_type', body.text('content_type')),
      expectedHash: readExpectedHash(body.text('expected_hash')),
      ...body.common(),
    }
    const { token, partBytes, partCount, expiresAt } = await actions.begin({ accountId, sizeBytes, fields })
    const first = Array.from({ length: Math.min(partCount, MAX_SIGNED_AT_ONCE) }, (_, index) => index + 1)
    const parts = await actions.signParts({ accountId, token }, first)
    return sendJson(reply, 201, {
      upload_id: token,
      part_size: partBytes,
      part_count: partCount,
      expires_at: expiresAt.toISOString(),
      parts: parts.map(toPartView),
    })
  })
}

function signDirectUploadParts(app: FastifyInstance, { contextOf, directUploads }: DirectUploadDeps): void {
  app.post(`${PATH}/parts`, needs('assets:write'), async (request, reply) => {
    const { accountId } = contextOf(request)
    const actions = mustBeOffered(directUploads)
    const body = await readAssetBody(request)
    const token = required('upload_id', body.text('upload_id'))
    const parts = await actions.signParts({ accountId, token }, readNumbers(body.member('numbers')))
    return sendJson(reply, 200, { parts: parts.map(toPartView) })
  })
}

function completeDirectUpload(
  app: FastifyInstance,
  { contextOf, contentLinks, directUploads }: DirectUploadDeps,
): void {
  app.post(`${PATH}/complete`, needs('assets:write'), async (request, reply) => {
    const context = contextOf(request)
    const actions = mustBeOffered(directUploads)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readAssetBody(request, { maxBytes: MAX_COMPLETION_BYTES })
    const token = required('upload_id', body.text('upload_id'))
    const parts = readParts(body.member('parts'))
    const { accountId } = context
    const { asset, createdNew } = await actions.complete({ accountId, token, parts, idempotencyKey })
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew })
    return sendJson(reply, createdNew ? 201 : 200, view)
  })
}

function abandonDirectUpload(app: FastifyInstance, { contextOf, directUploads }: DirectUploadDeps): void {
  app.post(`${PATH}/abandon`, needs('assets:write'), async (request, reply) => {
    const { accountId } = contextOf(request)
    const actions = mustBeOffered(directUploads)
    const token = required('upload_id', (await readAssetBody(request)).text('upload_id'))
    await actions.abandon({ accountId, token })
    return reply.code(204).send()
  })
}

export const DIRECT_UPLOADS = [
  beginDirectUpload,
  signDirectUploadParts,
  completeDirectUpload,
  abandonDirectUpload,
] as const

/** Clients that try this first fall back on the plain upload. */
function mustBeOffered(actions: DirectUploadActions | null): DirectUploadActions {
  if (actions !== null) return actions
  throw new ServiceError('not_found', 'this service takes no direct uploads; send the file to POST /api/v2/assets')
}

function toPartView({ number, sizeBytes, url }: SignedPart) {
  return { number, size_bytes: sizeBytes, url }
}

function required(name: string, text: string | null): string {
  if (text === null || text === '') throw invalidField(name, 'is missing')
  return text
}

function readExpectedHash(text: string | null): string | null {
  if (text === null) return null
  const hash = readWireHash(text)
  if (hash === null) throw invalidField('expected_hash', 'must be blake3: followed by 64 hexadecimal digits')
  return hash
}

function readNumbers(value: JsonValue | undefined): number[] {
  if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'number')) return value
  throw invalidField('numbers', 'must be a list of numbers of parts')
}

function readParts(value: JsonValue | undefined): SentPart[] {
  if (!Array.isArray(value)) throw invalidField('parts', 'must be a list')
  return value.map((each) => {
    const { number = null, etag = null } = isJsonObject(each) ? each : {}
    if (typeof number === 'number' && typeof etag === 'string' && ETAG.test(etag)) return { number, etag }
    throw invalidField('parts', 'must have a number and an etag each')
  })
}
