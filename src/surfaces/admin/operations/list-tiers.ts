import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import { ADMIN_PATH, send } from '../admin-operation.ts'

export function listTiers(app: FastifyInstance, { accounts }: { readonly accounts: Pick<Accounts, 'tiers'> }): void {
  app.get(`${ADMIN_PATH}/tiers`, (_request, reply) => {
    const { byName, defaultName } = accounts.tiers()
    const tiers = [...byName].map(([name, limits]) => ({ name, is_default: name === defaultName, limits }))
    return send(reply, 200, { tiers })
  })
}
