/** Does the caller have these bytes already? 200 or 404, without a body; malformed and foreign hashes look unknown. */
import type { FastifyInstance } from 'fastify'
import type { HasBlob } from '../../../domain/assets/create/asset-from-hash.ts'
import { readWireHash } from '../asset-view.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'

export interface HeadAssetByHashDeps {
  readonly kit: OperationKit
  readonly hasBlob: HasBlob
}

export function headAssetByHash(app: FastifyInstance, { kit, hasBlob }: HeadAssetByHashDeps): void {
  app.head(`${API_PATH}/assets/by-hash/:hash`, async (request, reply) => {
    const { accountId } = kit.contextOf(request)
    const hash = readWireHash((request.params as { hash: string }).hash)
    const isThere = hash !== null && (await hasBlob(accountId, hash))
    return reply.code(isThere ? 200 : 404).send()
  })
}
