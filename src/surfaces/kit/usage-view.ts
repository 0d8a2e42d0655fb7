/** What was spent, as the console and the administration show it: the same query, the same figures. Pure. */
import { writeUsd } from '../../../lib/text/usd.ts'
import type { ChargeGroup } from '../../domain/credits/charges.ts'
import type { UsageReport, UsageWish } from '../../domain/credits/usage-report.ts'
import { ServiceError } from '../../domain/errors.ts'

export const USAGE_PARAMETERS = ['from', 'to', 'tz', 'by'] as const

/** Throws invalid_request. */
export function readUsageWish(
  parameters: { get(name: string): string | null | undefined },
  groups: readonly ChargeGroup[],
): UsageWish {
  const text = (name: string) => parameters.get(name) ?? null
  const asked = text('by') ?? 'day'
  const by = groups.find((group) => group === asked)
  if (by === undefined) throw new ServiceError('invalid_request', `by must be one of ${groups.join(', ')}`)
  return { from: text('from'), to: text('to'), timeZone: text('tz'), by }
}

/** `labels`: names for people, by key. */
export function toUsageView(report: UsageReport, labels: ReadonlyMap<string, string> = new Map()) {
  const { total, rest } = report
  const rows =
    report.by === 'day'
      ? report.days.map(({ date, charged, count }) => ({
          key: date,
          label: null,
          kind: null,
          count,
          usd: writeUsd(charged),
        }))
      : report.groups.map(({ name, work, charged, count }) => ({
          ...{ key: name, label: labels.get(name ?? '') ?? null, kind: work, count, usd: writeUsd(charged) },
        }))
  const others =
    rest === null ? [] : [{ key: null, label: null, kind: 'rest', count: rest.count, usd: writeUsd(rest.charged) }]
  return {
    from: report.from.toISOString(),
    to: report.to.toISOString(),
    tz: report.timeZone,
    by: report.by,
    total_usd: writeUsd(total.charged),
    held_usd: writeUsd(report.held),
    refunds_usd: writeUsd(total.refunded),
    count: total.count,
    series: report.days.map(({ date, charged, count }) => ({ day: date, usd: writeUsd(charged), count })),
    rows: [...rows, ...others],
  }
}
