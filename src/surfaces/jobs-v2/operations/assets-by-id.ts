/** What can be asked of one asset. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type FindAsset, mustRead, type OpenContent, type RemoveAsset } from '../../../domain/assets/asset-content.ts'
import { asksToDownload, DOWNLOAD, sendContent } from '../../kit/content/send-content.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { toAssetView, toLinked } from '../views/asset-view.ts'
import { API_PATH, type ContentLinks } from '../views/links.ts'

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

function idOf(request: FastifyRequest): string {
  return (request.params as { id: string }).id
}
