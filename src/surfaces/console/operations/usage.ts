/** What the account spent, by day and by what it was for. */
import type { FastifyInstance } from 'fastify'
import type { ChargeGroup } from '../../../domain/credits/charges.ts'
import { needs } from '../../kit/guards/rights.ts'
import { readParameters } from '../../kit/request-url.ts'
import { sendJson } from '../../kit/send-json.ts'
import { readUsageWish, toUsageView, USAGE_PARAMETERS } from '../../kit/usage-view.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

const GROUPS: readonly ChargeGroup[] = ['day', 'model', 'pool', 'key']

export function getUsage(app: FastifyInstance, { callerOf, console: parts }: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/usage`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const wish = readUsageWish(readParameters(request.raw.url ?? '', USAGE_PARAMETERS), GROUPS)
    const [report, keys] = await Promise.all([
      parts.reportUsage(accountId, wish),
      wish.by === 'key' ? (parts.keys?.list(accountId) ?? []) : [],
    ])
    return sendJson(reply, 200, toUsageView(report, new Map(keys.map(({ id, name }) => [id, name]))))
  })
}
