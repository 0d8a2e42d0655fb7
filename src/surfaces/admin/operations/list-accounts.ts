import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import { toAccountView } from '../account-view.ts'
import { ADMIN_PATH, send } from '../admin-operation.ts'
import { readLimit, readParameters } from '../page-query.ts'

export function listAccounts(app: FastifyInstance, { accounts }: { readonly accounts: Pick<Accounts, 'list'> }): void {
  app.get(`${ADMIN_PATH}/accounts`, (request, reply) => {
    const parameters = readParameters(request, ['limit', 'after'])
    const [limit, after] = [readLimit(parameters), parameters.get('after') ?? '']
    const rest = accounts.list().filter(({ id }) => id > after)
    const page = rest.slice(0, limit)
    const next = rest.length > limit ? (page.at(-1)?.id ?? null) : null
    return send(reply, 200, { accounts: page.map(toAccountView), next })
  })
}
