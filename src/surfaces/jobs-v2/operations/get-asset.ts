/** The record, always with a fresh URL. */
import type { FastifyInstance } from 'fastify'
import type { FindAsset } from '../../../domain/assets/content.ts'
import { assetIdOf } from '../asset-id.ts'
import { toAssetView } from '../asset-view.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface GetAssetDeps {
  readonly kit: OperationKit
  readonly findAsset: FindAsset
}

export function getAsset(app: FastifyInstance, { kit, findAsset }: GetAssetDeps): void {
  app.get(`${API_PATH}/assets/:id`, async (request, reply) => {
    const context = kit.contextOf(request)
    const asset = await findAsset(context.accountId, assetIdOf(request))
    return sendJson(reply, 200, JSON.stringify(toAssetView(asset, context, { now: kit.clock.now() })))
  })
}
