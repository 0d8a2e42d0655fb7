import type { FastifyInstance } from 'fastify'
import type { ApiKeys } from '../../../domain/accounts/keys/api-keys.ts'
import { toKeyView } from '../account-view.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface RevokeKeyDeps {
  readonly kit: AdminKit
  readonly apiKeys: Pick<ApiKeys, 'revoke'>
}

export function revokeKey(app: FastifyInstance, { kit, apiKeys }: RevokeKeyDeps): void {
  app.post(`${ADMIN_PATH}/keys/:id/revoke`, async (request, reply) => {
    const id = idOf(request)
    const through = kit.audited(request, { action: 'key.revoke', subject: id, details: {} })
    return send(reply, 200, toKeyView(await apiKeys.revoke(id, through.apiKeys)))
  })
}
