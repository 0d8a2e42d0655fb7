/**
 * How an endpoint was used in a period, by day or by version. Runs count on the day on which they were accepted, as far as their jobs are
 * still kept; charges on the day on which they were made, which the ledger keeps for ever.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Micros } from '../../../lib/text/usd.ts'
import { toDayEdges } from '../../../lib/zoned-days.ts'
import { readPeriod, type UsageWish } from '../credits/usage-report.ts'
import type { RunLimitStore, ScopeUse } from '../jobs/limits/run-limits.ts'
import type { JobStatus } from '../jobs/transitions.ts'
import { type Endpoint, scopeOfEndpoint } from './endpoint.ts'
import type { EndpointRunsQuery, EndpointStore } from './endpoint-store.ts'

export const USAGE_GROUPS = ['day', 'version'] as const
export const USAGE_CALLERS = ['own', 'others'] as const
type UsageGroup = (typeof USAGE_GROUPS)[number]

interface EndpointUsageWish extends Omit<UsageWish, 'by'> {
  readonly by: UsageGroup
  /** Runs of the account itself, or those that other accounts made: how many and what they cost, and nothing else of them. */
  readonly of: EndpointRunsQuery['whose']
  /** Runs in this pool alone; null: in all. */
  readonly pool: string | null
}

export interface UsageRow {
  /** The date, or the number of the version; null: it was not noted. */
  readonly key: string | null
  readonly runs: number
  readonly byStatus: Readonly<Record<JobStatus, number>>
  /** How long engines have worked for those that have ended. */
  readonly runMs: number
  readonly charged: Micros
}

export interface EndpointUsage {
  readonly from: Date
  readonly to: Date
  readonly timeZone: string
  readonly by: UsageGroup
  readonly of: EndpointRunsQuery['whose']
  readonly total: Omit<UsageRow, 'key'>
  /** Every day of the period, or every version that was used, the newest first. */
  readonly rows: readonly UsageRow[]
  /** What counts for its limits; null: nothing was counted. */
  readonly counted: ScopeUse | null
}

/** Throws invalid_request. */
export type ReportEndpointUsage = (endpoint: Endpoint, wish: EndpointUsageWish) => Promise<EndpointUsage>

interface UsageDeps {
  readonly store: Pick<EndpointStore, 'findRuns'>
  readonly runLimits: Pick<RunLimitStore, 'findUse'>
  readonly clock: Clock
}

export function createReportEndpointUsage({ store, runLimits, clock }: UsageDeps): ReportEndpointUsage {
  return async ({ accountId, name }, { by, of, pool, ...wish }) => {
    const { from, to, timeZone, dateOf } = readPeriod(wish, clock.now())
    const edges = toDayEdges(from, to, dateOf)
    const scope = scopeOfEndpoint(name)
    const [{ runs, charges }, counted] = await Promise.all([
      store.findRuns({ accountId, name, whose: of, pool, edges }),
      // Limits count for each account by itself.
      of === 'own' ? runLimits.findUse(accountId, [scope]) : new Map<string, ScopeUse>(),
    ])
    const dates = edges.slice(0, -1).map(dateOf)
    const keyOf = ({ place, version }: { readonly place: number; readonly version: number | null }) =>
      by === 'day' ? dates[place] : version === null ? null : String(version)
    const rows = new Map<string | null, Counting>(by === 'day' ? dates.map((date) => [date, newRow(date)]) : [])
    const rowOf = (key: string | null) => {
      const row = rows.get(key) ?? newRow(key)
      rows.set(key, row)
      return row
    }
    const total = newRow(null)
    for (const found of runs) for (const row of [rowOf(keyOf(found)), total]) addRuns(row, found)
    for (const found of charges) for (const row of [rowOf(keyOf(found)), total]) row.charged += found.charged
    const { key: _, ...sums } = total
    const listed = [...rows.values()]
    if (by === 'version') listed.sort((one, other) => Number(other.key ?? 0) - Number(one.key ?? 0))
    return { from, to, timeZone, by, of, total: sums, rows: listed, counted: counted.get(scope) ?? null }
  }
}

interface Counting extends UsageRow {
  runs: number
  byStatus: Record<JobStatus, number>
  runMs: number
  charged: Micros
}

function newRow(key: string | null): Counting {
  const byStatus = { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
  return { key, runs: 0, byStatus, runMs: 0, charged: 0 }
}

function addRuns(row: Counting, found: { readonly status: JobStatus; readonly runs: number; readonly runMs: number }) {
  row.runs += found.runs
  row.byStatus[found.status] += found.runs
  row.runMs += found.runMs
}
