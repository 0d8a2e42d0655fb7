/** The record, always with a fresh URL. */
import type { FastifyInstance } from 'fastify'
import type { FindAsset } from '../../../domain/assets/asset-content.ts'
import { assetIdOf } from '../asset-id.ts'
import { toAssetView, toLinked } from '../asset-view.ts'
import type { ContentLinks } from '../content-links.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface GetAssetDeps {
  readonly kit: OperationKit
  readonly findAsset: FindAsset
  readonly contentLinks: ContentLinks
}

export function getAsset(app: FastifyInstance, { kit, findAsset, contentLinks }: GetAssetDeps): void {
  app.get(`${API_PATH}/assets/:id`, async (request, reply) => {
    const context = kit.contextOf(request)
    const asset = await findAsset(context.accountId, assetIdOf(request))
    const view = toAssetView(asset, contentLinks.fresh(toLinked(asset), context))
    return sendJson(reply, 200, JSON.stringify(view))
  })
}
