/** What was spent, and how long servers computed, as the console and the administration show it: the same query, the same figures. Pure. */
import { writeUsd } from '../../../lib/text/usd.ts'
import type { ChargeGroup } from '../../domain/credits/charges.ts'
import type { UsageReport, UsageWish } from '../../domain/credits/usage-report.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { GpuReport } from '../../domain/jobs/read/gpu-report.ts'

export const USAGE_PARAMETERS = ['from', 'to', 'tz', 'by'] as const

/** Throws invalid_request. */
export function readUsageWish<Group extends string = ChargeGroup>(
  parameters: { get(name: string): string | null | undefined },
  groups: readonly Group[],
): Omit<UsageWish, 'by'> & { readonly by: Group } {
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

/** `labels`: names for people, by key. */
export function toGpuView(report: GpuReport, labels: ReadonlyMap<string, string> = new Map()) {
  const { total, days, by, restMs } = report
  const series = days.map(({ date, ms, runs }) => ({ day: date, gpu_seconds: ms / 1000, runs }))
  const rows =
    by === 'day'
      ? series.map(({ day, ...sum }) => ({ key: day, label: null, ...sum }))
      : report.groups.map(({ name, ms, runs }) => ({
          ...{ key: name, label: labels.get(name) ?? null, gpu_seconds: ms / 1000, runs },
        }))
  return {
    from: report.from.toISOString(),
    to: report.to.toISOString(),
    tz: report.timeZone,
    by,
    total_gpu_seconds: total.ms / 1000,
    runs: total.runs,
    rest_gpu_seconds: restMs === null ? null : restMs / 1000,
    series,
    rows,
  }
}
