/**
 * The bytes of an asset, for GET and HEAD: sent from here in the local kind, and by a signed address that needs no
 * credential where many accounts share the service.
 */
import type { FastifyInstance } from 'fastify'
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import { sendContent } from '../../kit/send-content.ts'
import { assetIdOf } from '../asset-id.ts'
import type { ContentLinks } from '../content-links.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'

export interface GetAssetContentDeps {
  readonly kit: OperationKit
  readonly openContent: OpenContent
  readonly contentLinks: ContentLinks
}

export function getAssetContent(app: FastifyInstance, { kit, openContent, contentLinks }: GetAssetContentDeps): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: `${API_PATH}/assets/:id/content`,
    handler: async (request, reply) => {
      const context = kit.contextOf(request)
      const content = await openContent(context.accountId, assetIdOf(request))
      if (!contentLinks.areSigned) return sendContent(request, reply, content)
      const { id: assetId, accountId, expiresAt: endsAt } = content.asset
      const { url } = contentLinks.fresh({ assetId, accountId, endsAt }, context)
      return reply.code(302).header('location', url).send()
    },
  })
}
