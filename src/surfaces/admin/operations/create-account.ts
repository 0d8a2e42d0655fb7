import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import { readOverrides } from '../../../domain/accounts/limits/read-limits.ts'
import type { ReadAccountDetail } from '../account-detail.ts'
import { ADMIN_PATH, type AdminKit, send } from '../operation.ts'

export interface CreateAccountDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'create'>
  readonly readDetail: ReadAccountDetail
}

interface NewAccountBody {
  readonly id: string
  readonly name?: string
  readonly tier?: string
  readonly limits?: object
}

export function createAccount(app: FastifyInstance, { kit, accounts, readDetail }: CreateAccountDeps): void {
  app.post(`${ADMIN_PATH}/accounts`, async (request, reply) => {
    const body = await kit.readBody<NewAccountBody>(request, 'NewAccount')
    const { id, name = id, tier = null, limits = {} } = body
    const { directory } = kit.audited(request, { action: 'account.create', subject: id, details: { ...body } })
    const account = await accounts.create({ id, name, tier, overrides: readOverrides(limits) }, directory)
    return send(reply, 201, await readDetail(account))
  })
}
