/** The only answer that ever holds the text of the new key. */
import type { FastifyInstance } from 'fastify'
import type { StoredKey } from '../../../domain/accounts/keys/api-key.ts'
import type { ApiKeys } from '../../../domain/accounts/keys/api-keys.ts'
import type { KeyStore } from '../../../domain/accounts/keys/key-store.ts'
import { toKeyView } from '../account-view.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface CreateKeyDeps {
  readonly kit: AdminKit
  readonly apiKeys: Pick<ApiKeys, 'create'>
}

interface NewKeyBody {
  readonly name?: string
  readonly scopes?: readonly string[] | null
  readonly expires_at?: string | null
}

export function createKey(app: FastifyInstance, { kit, apiKeys }: CreateKeyDeps): void {
  app.post(`${ADMIN_PATH}/accounts/:id/keys`, async (request, reply) => {
    const accountId = idOf(request)
    const body = await kit.readBody<NewKeyBody>(request, 'NewKey')
    const { name = '', scopes = null, expires_at: expires = null } = body
    const expiresAt = expires === null ? null : new Date(expires)
    const through = (key: string): KeyStore => {
      const details = { key, name, scopes, expires_at: expires }
      return kit.audited(request, { action: 'key.create', subject: accountId, details }).apiKeys
    }
    // The id of the key is known when it is stored, and belongs into the line about it.
    const store = { ...through(''), insert: (key: StoredKey) => through(key.id).insert(key) }
    const { key, text } = await apiKeys.create({ accountId, name, scopes, expiresAt }, store)
    return send(reply, 201, { ...toKeyView(key), text })
  })
}
