import type { FastifyInstance } from 'fastify'
import type { ApiKeys } from '../../../domain/accounts/keys/api-keys.ts'
import { toKeyView } from '../account-view.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface RotateKeyDeps {
  readonly kit: AdminKit
  readonly apiKeys: Pick<ApiKeys, 'rotate'>
}

export function rotateKey(app: FastifyInstance, { kit, apiKeys }: RotateKeyDeps): void {
  app.post(`${ADMIN_PATH}/keys/:id/rotate`, async (request, reply) => {
    const id = idOf(request)
    const { overlap_seconds: seconds = 0 } = await kit.readBody<{ overlap_seconds?: number }>(request, 'KeyRotation')
    const through = kit.audited(request, { action: 'key.rotate', subject: id, details: { overlap_seconds: seconds } })
    const { key, text } = await apiKeys.rotate(id, { overlapMs: seconds * 1000 }, through.apiKeys)
    return send(reply, 200, { ...toKeyView(key), text })
  })
}
