/** What accounts spent, all together or one of them. */
import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import { CHARGE_GROUPS } from '../../../domain/credits/charges.ts'
import type { ReportUsage } from '../../../domain/credits/usage-report.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { readUsageWish, toUsageView, USAGE_PARAMETERS } from '../../kit/usage-view.ts'
import { ADMIN_PATH } from '../admin-operation.ts'
import { readParameters } from '../page-query.ts'
import { mustFindAccount } from './accounts.ts'

interface UsageDeps {
  readonly accounts: Pick<Accounts, 'find'>
  readonly reportUsage: ReportUsage
}

export function getUsage(app: FastifyInstance, { accounts, reportUsage }: UsageDeps): void {
  app.get(`${ADMIN_PATH}/usage`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, [...USAGE_PARAMETERS, 'account'])
    const wish = readUsageWish(parameters, CHARGE_GROUPS)
    const asked = parameters.get('account') ?? null
    const accountId = asked === null ? null : mustFindAccount(accounts, asked).id
    const report = await reportUsage(accountId, wish)
    const named = wish.by === 'account' ? report.groups.flatMap(({ name }) => accounts.find(name ?? '') ?? []) : []
    return sendJson(reply, 200, toUsageView(report, new Map(named.map(({ id, name }) => [id, name]))))
  })
}
