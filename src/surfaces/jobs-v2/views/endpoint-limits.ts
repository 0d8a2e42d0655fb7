/** Limits, prices and usage of endpoints in the words of the wire: money is a text in US dollars. */
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { MAX_MICROS, type Micros, readUsd, writeUsd } from '../../../../lib/text/usd.ts'
import type { Endpoint, EndpointPrice } from '../../../domain/endpoints/endpoint.ts'
import type { EndpointUsage, UsageRow } from '../../../domain/endpoints/endpoint-usage.ts'
import { invalidField } from '../../../domain/errors.ts'
import {
  type LimitsChange,
  NO_LIMITS,
  type Period,
  type RunLimits,
  type ScopeUse,
} from '../../../domain/jobs/limits/run-limits.ts'

type ByPeriod<Value> = Readonly<Partial<Record<Period, Value>>>

function mapPeriods<From, To>(values: ByPeriod<From>, toValue: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([period, value]) => [period, toValue(value as From)]))
}

export function toLimitsView({ inFlight, runs, spend }: RunLimits): JsonObject {
  return { in_flight: inFlight, runs: { ...runs }, spend_usd: mapPeriods(spend, writeUsd) }
}

/** As the contract has checked it. Throws invalid_field. */
export function readLimits(value: JsonObject | null): LimitsChange {
  const nothing = { hour: null, day: null, month: null, ever: null }
  if (value === null) return { inFlight: null, runs: nothing, spend: nothing }
  const { in_flight: inFlight, runs, spend_usd: spend } = value
  return {
    ...(inFlight !== undefined && { inFlight: inFlight as number | null }),
    ...(runs !== undefined && { runs: (runs as LimitsChange['runs']) ?? nothing }),
    ...(spend !== undefined && {
      spend: spend === null ? nothing : mapPeriods(spend as ByPeriod<string | null>, readSpend),
    }),
  }
}

function readSpend(text: string | null): Micros | null {
  if (text === null) return null
  const micros = readUsd(text)
  if (micros !== null && micros >= 0 && micros <= MAX_MICROS) return micros
  throw invalidField('limits.spend_usd', 'must be an amount in US dollars, such as 12.50')
}

export function toEndpointPriceView(price: EndpointPrice | null): JsonObject | null {
  if (price === null) return null
  if (price.kind === 'free') return { kind: price.kind }
  const usd = writeUsd(price.micros)
  return price.kind === 'per_run' ? { kind: price.kind, usd } : { kind: price.kind, usd, max_seconds: price.maxSeconds }
}

export function toUsageView({ settings, name }: Endpoint, usage: EndpointUsage) {
  const { from, to, timeZone, by, of, total, rows, counted } = usage
  return {
    ...{ endpoint: name, from: from.toISOString(), to: to.toISOString(), tz: timeZone, by, of },
    total: toSums(total),
    rows: rows.map((row) => ({ key: row.key, ...toSums(row) })),
    limits: toLimitsUse(of === 'own' ? settings.limits : NO_LIMITS, counted),
  }
}

function toSums({ runs, byStatus, runMs, charged }: Omit<UsageRow, 'key'>) {
  const { running, canceling, ...others } = byStatus
  return { runs, ...others, running: running + canceling, seconds: runMs / 1000, usd: writeUsd(charged) }
}

/** Each limit, with what counts for it now. */
function toLimitsUse({ inFlight, runs, spend }: RunLimits, counted: ScopeUse | null) {
  const tally = (period: string) => counted?.tallies[period as Period] ?? { runs: 0, micros: 0 }
  const byPeriod = <Value>(limits: ByPeriod<number>, toPair: (period: string, most: number) => Value) =>
    Object.fromEntries(Object.entries(limits).map(([period, most]) => [period, toPair(period, most)]))
  return {
    in_flight: inFlight === null ? null : { now: counted?.inFlight ?? 0, maximum: inFlight },
    runs: byPeriod(runs, (period, most) => ({ now: tally(period).runs, maximum: most })),
    spend_usd: byPeriod(spend, (period, most) => ({
      now: writeUsd(Math.max(0, tally(period).micros)),
      maximum: writeUsd(most),
    })),
  }
}

const COLUMNS = ['runs', 'queued', 'running', 'succeeded', 'failed', 'canceled', 'expired', 'seconds', 'usd'] as const

/** A table with a line for each row. No value has a comma or a quote in it. */
export function toUsageCsv({ by, rows }: EndpointUsage): string {
  const lines = rows.map((row) => {
    const sums = toSums(row)
    return [row.key ?? '', ...COLUMNS.map((column) => sums[column])].join(',')
  })
  return `${[[by, ...COLUMNS].join(','), ...lines].join('\r\n')}\r\n`
}
