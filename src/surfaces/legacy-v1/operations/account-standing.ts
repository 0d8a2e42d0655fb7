/**
 * What the hosted v1 tells an account of itself: who it is and what it may still spend. There is nothing to subscribe to here, so the
 * tier stands for the plan, and an account that is not metered has no balance.
 */
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'

// The fields of a balance are called micros and hold cents, as clients of the hosted API read them.
const MICROS_PER_CENT = 10_000

export function accountStanding(api: Api, { console: about, callerOf }: OperationDeps): void {
  api.apiOnly('GET', '/billing/status', 'any_scope', async (request, reply) => {
    const { tier, mayRun, credit } = await about.standingOf(callerOf(request))
    return sendJson(reply, {
      subscription_status: mayRun ? 'active' : 'inactive',
      ...(tier !== null && { subscription_tier: tier.toUpperCase(), plan_slug: tier }),
      is_active: mayRun,
      has_funds: credit === null || credit.available > 0,
      billing_rail: 'operator',
    })
  })
  api.apiOnly('GET', '/billing/balance', 'any_scope', async (request, reply) => {
    const { credit } = await about.standingOf(callerOf(request))
    if (credit === null) return sendJson(reply, { currency: 'usd' })
    const cents = Math.floor(credit.available / MICROS_PER_CENT)
    return sendJson(reply, { currency: 'usd', amount_micros: cents, effective_balance_micros: cents })
  })
  api.apiOnly('GET', '/billing/plans', 'any_scope', async (request, reply) => {
    const { tier } = await about.standingOf(callerOf(request))
    return sendJson(reply, { current_plan_slug: tier, plans: [] })
  })
  api.apiOnly('GET', '/workspaces/current', 'any_scope', async (request, reply) => {
    const { id, name } = await about.standingOf(callerOf(request))
    return sendJson(reply, { id, name, type: 'personal', role: null })
  })
}
