import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { ApiKeys } from '../../../domain/accounts/keys/api-keys.ts'
import { toKeyView } from '../account-view.ts'
import { mustFindAccount } from '../must-find.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'

export interface ListKeysDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly apiKeys: Pick<ApiKeys, 'list'>
}

export function listKeys(app: FastifyInstance, { accounts, apiKeys }: ListKeysDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/keys`, async (request, reply) => {
    const keys = await apiKeys.list(mustFindAccount(accounts, idOf(request)).id)
    return send(reply, 200, { keys: keys.map(toKeyView) })
  })
}
