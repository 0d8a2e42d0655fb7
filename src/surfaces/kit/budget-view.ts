/** Budgets in the words of the wire, for their accounts and for operators. Shapes are the contract's. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { readUsd, writeUsd } from '../../../lib/text/usd.ts'
import type { Budget } from '../../domain/credits/budgets/budget.ts'
import type { BudgetEdit, BudgetStanding, BudgetWish } from '../../domain/credits/budgets/manage-budgets.ts'
import { invalidField } from '../../domain/errors.ts'

const USUAL_SHARES = [80, 100]

type Body = Readonly<Record<string, JsonValue | undefined>>

export function toBudgetWish(body: Body): BudgetWish {
  return {
    name: body['name'] as string,
    subject: (body['subject'] ?? 'account') as Budget['subject'],
    value: (body['value'] ?? null) as string | null,
    limitMicros: readAmount(body['limit_usd'], 'limit_usd'),
    unit: body['period'] as Budget['unit'],
    style: body['rolling'] === true ? 'rolling' : 'calendar',
    timeZone: (body['time_zone'] ?? 'UTC') as string,
    shares: (body['alert_percent'] ?? USUAL_SHARES) as readonly number[],
    isHard: body['hard'] !== false,
  }
}

export function toBudgetEdit(body: Body): BudgetEdit {
  const raise = body['raise'] as { readonly usd: string; readonly until: string } | null | undefined
  return {
    ...(body['name'] !== undefined && { name: body['name'] as string }),
    ...(body['limit_usd'] !== undefined && { limitMicros: readAmount(body['limit_usd'], 'limit_usd') }),
    ...(body['alert_percent'] !== undefined && { shares: body['alert_percent'] as readonly number[] }),
    ...(body['hard'] !== undefined && { isHard: body['hard'] as boolean }),
    ...(raise === null && { raise: null }),
    ...(raise != null && { raise: { micros: readAmount(raise.usd, 'raise.usd'), until: readTime(raise.until) } }),
  }
}

function readAmount(value: JsonValue | undefined, field: string): number {
  const micros = typeof value === 'string' ? readUsd(value) : null
  if (micros === null) throw invalidField(field, 'must be an amount of dollars such as "12.50"')
  return micros
}

function readTime(text: string): Date {
  const time = new Date(text)
  if (!Number.isNaN(time.getTime())) return time
  throw invalidField('raise.until', 'must be a time such as 2030-01-31T12:00:00Z')
}

export function toBudgetView({ budget, spentMicros, limitNowMicros, resetsAt }: BudgetStanding): JsonObject {
  const { id, name, owner, subject, value, unit, style, timeZone, shares, isHard, raiseMicros, raiseUntil } = budget
  return {
    ...{ id, name, set_by: owner, subject, value },
    ...{ limit_usd: writeUsd(budget.limitMicros), limit_now_usd: writeUsd(limitNowMicros) },
    ...{ spent_usd: writeUsd(spentMicros), left_usd: writeUsd(Math.max(0, limitNowMicros - spentMicros)) },
    ...{ period: unit, rolling: style === 'rolling', time_zone: timeZone, resets_at: resetsAt.toISOString() },
    ...{ alert_percent: [...shares], hard: isHard },
    raise:
      raiseMicros === null || raiseUntil === null
        ? null
        : { usd: writeUsd(raiseMicros), until: raiseUntil.toISOString() },
    ...{ created_at: budget.createdAt.toISOString(), updated_at: budget.changedAt.toISOString() },
  }
}
