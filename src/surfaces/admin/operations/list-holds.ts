import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { LedgerStore } from '../../../domain/credits/ledger.ts'
import { toHoldView } from '../account-view.ts'
import { mustFindAccount } from '../must-find.ts'
import { ADMIN_PATH, idOf, send } from '../operation.ts'

export interface ListHoldsDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly ledger: Pick<LedgerStore, 'holds'>
}

const MAX_HOLDS = 1000

export function listHolds(app: FastifyInstance, { accounts, ledger }: ListHoldsDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/holds`, async (request, reply) => {
    const { id } = mustFindAccount(accounts, idOf(request))
    const holds = await ledger.holds(id, MAX_HOLDS)
    return send(reply, 200, { holds: holds.map(toHoldView) })
  })
}
