/** An asset of a file on this machine: 201 for bytes that are new to the caller, 200 for bytes that it already had. */
import type { FastifyInstance } from 'fastify'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { AssetFromPath } from '../../../domain/assets/from-path.ts'
import { invalidField } from '../../../domain/errors.ts'
import { readJsonBody } from '../../kit/json-body.ts'
import { readAssetBody } from '../asset-body.ts'
import { toAssetView, toLinked } from '../asset-view.ts'
import type { ContentLinks } from '../content-links.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface AssetFromPathDeps {
  readonly kit: OperationKit
  readonly assetFromPath: AssetFromPath
  readonly contentLinks: ContentLinks
}

const MAX_BODY_BYTES = 64 * 1024

export function assetFromPath(app: FastifyInstance, { kit, assetFromPath, contentLinks }: AssetFromPathDeps): void {
  app.post(`${API_PATH}/assets/from-path`, async (request, reply) => {
    const context = kit.contextOf(request)
    const fields = readFields(await readJsonBody(request, { maxBytes: MAX_BODY_BYTES }))
    const { asset, createdNew } = await assetFromPath({ accountId: context.accountId, ...fields })
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew })
    return sendJson(reply, createdNew ? 201 : 200, JSON.stringify(view))
  })
}

function readFields(value: JsonValue) {
  const body = readAssetBody(value)
  const path = body.text('path')
  if (path === null || path === '') throw invalidField('path', 'is missing: give an absolute path on this machine')
  return { path, filePath: body.text('file_path'), contentType: body.text('content_type'), ...body.common() }
}
