/** A new reference to bytes that the caller already has: 201, or 200 when the very same reference existed. */
import type { FastifyInstance } from 'fastify'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { AssetFromHash } from '../../../domain/assets/from-hash.ts'
import { invalidField } from '../../../domain/errors.ts'
import { readJsonBody } from '../../kit/json-body.ts'
import { type AssetBody, readAssetBody } from '../asset-body.ts'
import { readWireHash, toAssetView, toLinked } from '../asset-view.ts'
import type { ContentLinks } from '../content-links.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface AssetFromHashDeps {
  readonly kit: OperationKit
  readonly assetFromHash: AssetFromHash
  readonly contentLinks: ContentLinks
}

const MAX_BODY_BYTES = 64 * 1024

export function assetFromHash(app: FastifyInstance, { kit, assetFromHash, contentLinks }: AssetFromHashDeps): void {
  app.post(`${API_PATH}/assets/from-hash`, async (request, reply) => {
    const context = kit.contextOf(request)
    const body = await readJsonBody(request, { maxBytes: MAX_BODY_BYTES })
    const { asset, isNewReference } = await assetFromHash({ accountId: context.accountId, ...readFields(body) })
    // `created_new` tells new bytes from bytes that were there already, and these always were.
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context), { createdNew: false })
    return sendJson(reply, isNewReference ? 201 : 200, JSON.stringify(view))
  })
}

function readFields(value: JsonValue) {
  const body = readAssetBody(value)
  return { hash: readHash(body), filePath: body.text('file_path'), ...body.common() }
}

function readHash(body: AssetBody): string {
  const value = body.member('hash')
  const hash = typeof value === 'string' ? readWireHash(value) : null
  if (hash === null) throw invalidField('hash', 'must be blake3: followed by 64 hexadecimal digits')
  return hash
}
