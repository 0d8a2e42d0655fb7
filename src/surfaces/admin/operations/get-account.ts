import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { ReadAccountDetail } from '../account-detail.ts'
import { ADMIN_PATH, idOf, send } from '../admin-operation.ts'
import { mustFindAccount } from '../must-find.ts'
import { readNumber, readParameters } from '../page-query.ts'

export interface GetAccountDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly readDetail: ReadAccountDetail
}

const USAGE = { fallback: 30, max: 3660 }

export function getAccount(app: FastifyInstance, { accounts, readDetail }: GetAccountDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id`, async (request, reply) => {
    const usageDays = readNumber(readParameters(request, ['usage_days']), 'usage_days', USAGE)
    return send(reply, 200, await readDetail(mustFindAccount(accounts, idOf(request)), { usageDays }))
  })
}
