/** Assets of bytes that are here already: asked for by hash, and made by hash or from a file on this machine. */
import type { FastifyInstance } from 'fastify'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { AssetFromHash, HasBlob } from '../../../domain/assets/create/asset-from-hash.ts'
import type { AssetFromPath } from '../../../domain/assets/create/asset-from-path.ts'
import { invalidField } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { readWireHash, toAssetView, toLinked } from '../views/asset-view.ts'
import { API_PATH, type ContentLinks } from '../views/links.ts'
import { readAssetBody } from './asset-body.ts'

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
