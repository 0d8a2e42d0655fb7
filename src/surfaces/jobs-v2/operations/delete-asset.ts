/** Removes the record; the bytes stay as long as another record uses them. */
import type { FastifyInstance } from 'fastify'
import type { RemoveAsset } from '../../../domain/assets/asset-content.ts'
import { assetIdOf } from '../asset-id.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'

export interface DeleteAssetDeps {
  readonly kit: OperationKit
  readonly removeAsset: RemoveAsset
}

export function deleteAsset(app: FastifyInstance, { kit, removeAsset }: DeleteAssetDeps): void {
  app.delete(`${API_PATH}/assets/:id`, async (request, reply) => {
    const { accountId } = kit.contextOf(request)
    await removeAsset(accountId, assetIdOf(request))
    return reply.code(204).send()
  })
}
