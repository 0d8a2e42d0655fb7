/**
 * Upload: the file streams from the socket to the disk and is hashed on its way. 201 for bytes that are new to the caller,
 * 200 for bytes that it already had. A refusal is sent as soon as it is certain; the rest of the body is not waited for.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { forAccount, type PerAccount } from '../../../domain/accounts/limits/tiers.ts'
import { TAGS_MAX_COUNT } from '../../../domain/assets/create/asset-fields.ts'
import type { UploadAsset, UploadRequest } from '../../../domain/assets/create/upload-asset.ts'
import type { UploadFields } from '../../../domain/assets/create/upload-fields.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { type MultipartForm, readMultipart } from '../../kit/bodies/multipart.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { readWireHash, toAssetView, toLinked } from '../views/asset-view.ts'
import { API_PATH, type ContentLinks } from '../views/links.ts'

export interface PostAssetsDeps {
  readonly contextOf: ContextOf
  readonly uploadAsset: UploadAsset
  readonly maxUploadBytes: PerAccount
  readonly contentLinks: ContentLinks
}

// Fields, part headers and boundaries around the file.
const FORM_OVERHEAD_BYTES = 1024 * 1024
const FORM = {
  fileField: 'file',
  repeatable: ['tags'],
  // The known fields, and room for some that we do not know.
  maxFields: TAGS_MAX_COUNT + 32,
  maxFieldBytes: 8 * 1024,
}

const REQUIRED = ['content_type', 'file_path'] as const

export function postAssets(app: FastifyInstance, deps: PostAssetsDeps): void {
  const { contextOf, uploadAsset, maxUploadBytes, contentLinks } = deps

  async function upload(form: MultipartForm, caller: Pick<UploadRequest, 'accountId' | 'idempotencyKey'>) {
    try {
      const isComplete = REQUIRED.every((name) => form.fields.has(name))
      const fields = isComplete ? readFields(form) : null
      return await uploadAsset({ ...caller, source: form.file, fields, finalFields: () => readFields(form) })
    } catch (error) {
      form.abandon()
      throw error
    }
  }

  app.post(`${API_PATH}/assets`, needs('assets:write'), async (request, reply) => {
    const context = contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    refuseDeclaredLength(request.raw, forAccount(maxUploadBytes, context.accountId))
    const form = await readMultipart(request.raw, FORM)
    const { asset, createdNew } = await upload(form, { accountId: context.accountId, idempotencyKey })
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew })
    return sendJson(reply, createdNew ? 201 : 200, view)
  })
}

/** Checked early, so that no client sends gigabytes only to be refused. */
function refuseDeclaredLength(request: IncomingMessage, maxUploadBytes: number): void {
  const declared = Number(request.headers['content-length'])
  if (!(declared > maxUploadBytes + FORM_OVERHEAD_BYTES)) return
  throw new ServiceError('payload_too_large', `the file is larger than the limit of ${maxUploadBytes} bytes`, {
    details: { max_bytes: maxUploadBytes },
  })
}

function readFields({ fields }: MultipartForm): UploadFields {
  const expectedHash = fields.get('expected_hash')?.[0]
  const expiresIn = fields.get('expires_in')?.[0]
  return {
    contentType: required(fields, 'content_type'),
    filePath: required(fields, 'file_path'),
    expectedHash: expectedHash === undefined ? null : readExpectedHash(expectedHash),
    tags: fields.get('tags') ?? [],
    expiresInSeconds: expiresIn === undefined ? null : readSeconds(expiresIn),
  }
}

function required(fields: MultipartForm['fields'], name: (typeof REQUIRED)[number]): string {
  const value = fields.get(name)?.[0]
  if (value === undefined) throw invalidField(name, 'is missing')
  return value
}

function readExpectedHash(text: string): string {
  const hash = readWireHash(text.trim())
  if (hash === null) throw invalidField('expected_hash', 'must be blake3: followed by 64 hexadecimal digits')
  return hash
}

function readSeconds(text: string): number {
  if (!/^\d{1,9}$/.test(text.trim())) throw invalidField('expires_in', 'must be a whole number of seconds')
  return Number(text)
}
