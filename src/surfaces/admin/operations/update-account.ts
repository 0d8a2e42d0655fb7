import type { FastifyInstance } from 'fastify'
import type { AccountRecord, AccountStatus } from '../../../domain/accounts/account.ts'
import type { AccountChange, Accounts } from '../../../domain/accounts/accounts.ts'
import { readOverrides } from '../../../domain/accounts/limits/read-limits.ts'
import type { ReadAccountDetail } from '../account-detail.ts'
import { mustFindAccount } from '../must-find.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface UpdateAccountDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find' | 'change'>
  readonly readDetail: ReadAccountDetail
}

interface AccountChangeBody {
  readonly name?: string
  readonly tier?: string
  readonly status?: AccountStatus
  readonly limits?: object
  readonly subscription_active?: boolean
}

export function updateAccount(app: FastifyInstance, { kit, accounts, readDetail }: UpdateAccountDeps): void {
  app.patch(`${ADMIN_PATH}/accounts/:id`, async (request, reply) => {
    const id = idOf(request)
    const body = await kit.readBody<AccountChangeBody>(request, 'AccountChange')
    const change = toChange(mustFindAccount(accounts, id), body)
    const { directory } = kit.audited(request, { action: 'account.update', subject: id, details: { ...body } })
    return send(reply, 200, await readDetail(await accounts.change(id, change, directory)))
  })
}

function toChange({ overrides }: AccountRecord, body: AccountChangeBody): AccountChange {
  const { limits, subscription_active: subscriptionActive, ...rest } = body
  if (limits === undefined && subscriptionActive === undefined) return rest
  const own = limits === undefined ? overrides : readOverrides(limits)
  return { ...rest, overrides: subscriptionActive === undefined ? own : { ...own, subscriptionActive } }
}
