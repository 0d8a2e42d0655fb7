/** What the calls under way of an account may cost together, and the ceiling for it. Answers and refusals tell both. */
import { type Micros, writeUsd } from '../../../../lib/text/usd.ts'
import type { CallLimits, CallStore, NewCall, Standing } from '../calls/call-store.ts'
import { RouterError, type Spend } from '../router-error.ts'
import type { AccessRules } from './model-access.ts'

/** null: the account has no limits. */
export type SpendOf = (accountId: string) => Promise<Spend | null>

interface SpendDeps {
  readonly store: Pick<CallStore, 'standing'>
  readonly rules: Pick<AccessRules, 'limitsOf'>
}

export function createSpendOf({ store, rules }: SpendDeps): SpendOf {
  // Refusals tell it too: an account that keeps being refused asks the store one question at a time.
  const asked = new Map<string, Promise<Standing>>()
  return async (accountId) => {
    const limits = rules.limitsOf(accountId)
    if (limits.ceilingMicros === null && limits.maxCalls === null) return null
    let asking = asked.get(accountId)
    if (asking === undefined) {
      asking = store.standing(accountId).finally(() => asked.delete(accountId))
      asked.set(accountId, asking)
    }
    return toSpend(limits, await asking)
  }
}

export function toSpend(limits: CallLimits, standing: Standing): Spend {
  return {
    limitMicros: limits.ceilingMicros,
    committedMicros: standing.committedMicros,
    maxCalls: limits.maxCalls,
    runningCalls: standing.runningCalls,
  }
}

/** Whether the call alone commits more than the account may: it is refused even when nothing else is under way. */
export function neverFits({ spendMicros }: Pick<NewCall, 'spendMicros'>, { ceilingMicros }: CallLimits): boolean {
  return ceilingMicros !== null && spendMicros > ceilingMicros
}

/** No retry helps, so none is asked for. */
export function toNeverFitting(spendMicros: Micros, ceilingMicros: Micros | null, spend: Spend | null): RouterError {
  const message =
    `this call alone may cost up to ${writeUsd(spendMicros)} USD, and the calls that this account has under way may commit ` +
    `${writeUsd(ceilingMicros ?? 0)} USD together: it can never fit. Ask for less, or have the ceiling of committed spend raised`
  return new RouterError('spend_exhausted', message, { spend })
}
