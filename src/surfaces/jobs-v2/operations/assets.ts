/** Assets: uploaded, made from bytes that are there, read and removed. */

import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import { forAccount, type PerAccount } from '../../../domain/accounts/limits/tiers.ts'
import { type FindAsset, mustRead, type OpenContent, type RemoveAsset } from '../../../domain/assets/asset-content.ts'
import { TAGS_MAX_COUNT } from '../../../domain/assets/create/asset-fields.ts'
import type { AssetFromHash, HasBlob } from '../../../domain/assets/create/asset-from-hash.ts'
import type { AssetFromPath } from '../../../domain/assets/create/asset-from-path.ts'
import type { UploadAsset, UploadRequest } from '../../../domain/assets/create/upload-asset.ts'
import type { UploadFields } from '../../../domain/assets/create/upload-fields.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import { type MultipartForm, readMultipart } from '../../kit/bodies/multipart.ts'
import { asksToDownload, DOWNLOAD, sendContent } from '../../kit/content/send-content.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH, type ContentLinks, readWireHash, toAssetView, toLinked } from '../views/job-view.ts'

export interface AssetsByIdDeps {
  readonly contextOf: ContextOf
  readonly findAsset: FindAsset
  readonly removeAsset: RemoveAsset
  readonly openContent: OpenContent
  readonly contentLinks: ContentLinks
}

const ASSET_ROUTE = `${API_PATH}/assets/:id`

/** The record, always with a fresh URL. */
function getAsset(app: FastifyInstance, { contextOf, findAsset, contentLinks }: AssetsByIdDeps): void {
  app.get(ASSET_ROUTE, needs('asset'), async (request, reply) => {
    const context = contextOf(request)
    await mustRead(context, () => findAsset(context.accountId, idOf(request)))
    const asset = await findAsset(context.accountId, idOf(request))
    return sendJson(reply, 200, toAssetView(asset, contentLinks.fresh(toLinked(asset), context)))
  })
}

/** Removes the record; the bytes stay as long as another record uses them. */
function deleteAsset(app: FastifyInstance, { contextOf, removeAsset }: AssetsByIdDeps): void {
  app.delete(ASSET_ROUTE, needs('assets:write'), async (request, reply) => {
    const { accountId } = contextOf(request)
    await removeAsset(accountId, idOf(request))
    return reply.code(204).send()
  })
}

/**
 * The bytes of an asset, for GET and HEAD: sent from here in the local kind, and by a signed address that needs no
 * credential where many accounts share the service.
 */
function getAssetContent(app: FastifyInstance, deps: AssetsByIdDeps): void {
  const { contextOf, findAsset, openContent, contentLinks } = deps
  app.route({
    method: ['GET', 'HEAD'],
    url: `${ASSET_ROUTE}/content`,
    ...needs('asset'),
    handler: async (request, reply) => {
      const context = contextOf(request)
      await mustRead(context, () => findAsset(context.accountId, idOf(request)))
      const content = await openContent(context.accountId, idOf(request))
      if (!contentLinks.areSigned) return sendContent(request, reply, content)
      const { url } = contentLinks.fresh(toLinked(content.asset), context)
      const ending = asksToDownload(request.raw.url ?? '') ? `&${DOWNLOAD}` : ''
      return reply
        .code(302)
        .header('location', url + ending)
        .send()
    },
  })
}

export const ASSETS_BY_ID = [getAsset, deleteAsset, getAssetContent]

/** Assets of bytes that are here already: asked for by hash, and made by hash or from a file on this machine. */
export interface AssetsWithoutUploadDeps {
  readonly contextOf: ContextOf
  readonly hasBlob: HasBlob
  readonly assetFromHash: AssetFromHash
  readonly assetFromPath: AssetFromPath
  readonly contentLinks: ContentLinks
}

/** Does the caller have these bytes already? 200 or 404, without a body; malformed and foreign hashes look unknown. */
export function headAssetByHash(
  app: FastifyInstance,
  { contextOf, hasBlob }: Pick<AssetsWithoutUploadDeps, 'contextOf' | 'hasBlob'>,
): void {
  app.head(`${API_PATH}/assets/by-hash/:hash`, needs('assets:read'), async (request, reply) => {
    const { accountId } = contextOf(request)
    const hash = readWireHash((request.params as { hash: string }).hash)
    const isThere = hash !== null && (await hasBlob(accountId, hash))
    return reply.code(isThere ? 200 : 404).send()
  })
}

/** A new reference to bytes that the caller already has: 201, or 200 when the very same reference existed. */
export function assetFromHash(
  app: FastifyInstance,
  { contextOf, assetFromHash, contentLinks }: Omit<AssetsWithoutUploadDeps, 'hasBlob' | 'assetFromPath'>,
): void {
  app.post(`${API_PATH}/assets/from-hash`, needs('assets:write'), async (request, reply) => {
    const context = contextOf(request)
    const body = await readAssetBody(request)
    const fields = { hash: readHash(body.member('hash')), filePath: body.text('file_path'), ...body.common() }
    const { asset, isNewReference } = await assetFromHash({ accountId: context.accountId, ...fields })
    // `created_new` tells new bytes from bytes that were there already, and these always were.
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew: false })
    return sendJson(reply, isNewReference ? 201 : 200, view)
  })
}

/** An asset of a file on this machine: 201 for bytes that are new to the caller, 200 for bytes that it already had. */
export function assetFromPath(
  app: FastifyInstance,
  { contextOf, assetFromPath, contentLinks }: Omit<AssetsWithoutUploadDeps, 'hasBlob' | 'assetFromHash'>,
): void {
  app.post(`${API_PATH}/assets/from-path`, needs('assets:write'), async (request, reply) => {
    const context = contextOf(request)
    const body = await readAssetBody(request)
    const path = body.text('path')
    if (path === null || path === '') throw invalidField('path', 'is missing: give an absolute path on this machine')
    const fields = { path, filePath: body.text('file_path'), contentType: body.text('content_type'), ...body.common() }
    const { asset, createdNew } = await assetFromPath({ accountId: context.accountId, ...fields })
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew })
    return sendJson(reply, createdNew ? 201 : 200, view)
  })
}

function readHash(value: JsonValue | undefined): string {
  const hash = typeof value === 'string' ? readWireHash(value) : null
  if (hash === null) throw invalidField('hash', 'must be blake3: followed by 64 hexadecimal digits')
  return hash
}

/**
 * Upload: the file streams from the socket to the disk and is hashed on its way. 201 for bytes that are new to the caller,
 * 200 for bytes that it already had. A refusal is sent as soon as it is certain; the rest of the body is not waited for.
 */
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

/** The JSON bodies of operations that make assets: an object whose members are read one by one. */
interface AssetBody {
  member(name: string): JsonValue | undefined
  /** null when it is left out, or null itself. */
  text(name: string): string | null
  common(): { readonly tags: readonly string[]; readonly expiresInSeconds: number | null }
}

const MAX_BODY_BYTES = 64 * 1024

export async function readAssetBody(
  request: FastifyRequest,
  { maxBytes = MAX_BODY_BYTES }: { readonly maxBytes?: number } = {},
): Promise<AssetBody> {
  const body = await readJsonObject(request, { maxBytes })
  const member = (name: string) => (Object.hasOwn(body, name) ? body[name] : undefined)

  /** null counts as left out. */
  function optional<Value extends JsonValue>(
    name: string,
    is: (value: JsonValue) => value is Value,
    problem: string,
  ): Value | null {
    const value = member(name) ?? null
    if (value === null) return null
    if (!is(value)) throw invalidField(name, problem)
    return value
  }

  return {
    member,
    text: (name) => optional(name, isText, 'must be a text'),
    common: () => ({
      tags: optional('tags', isTexts, 'must be a list of texts') ?? [],
      expiresInSeconds: optional('expires_in', isNumber, 'must be a whole number of seconds'),
    }),
  }
}

const isText = (value: JsonValue) => typeof value === 'string'
const isNumber = (value: JsonValue) => typeof value === 'number'
const isTexts = (value: JsonValue): value is string[] => Array.isArray(value) && value.every(isText)
