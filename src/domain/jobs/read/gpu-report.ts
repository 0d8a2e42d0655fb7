/**
 * How long servers computed in a period, by day and by what it was for. A row of the facts is written when an attempt ends, in the same
 * transaction, and counts on that day. By class and by weights a run counts in several rows or in none; by anything else in exactly one.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { toDayEdges } from '../../../../lib/zoned-days.ts'
import { readPeriod, type UsageWish } from '../../credits/usage-report.ts'

export const GPU_GROUPS = ['day', 'pool', 'server', 'class', 'weights', 'job', 'account'] as const
export type GpuGroup = (typeof GPU_GROUPS)[number]

interface GpuSum {
  readonly ms: number
  /** Attempts that computed. */
  readonly runs: number
}

interface GpuQuery {
  /** null: of all accounts. */
  readonly accountId: string | null
  /** Where each day begins, ascending, and at last where the last one ends. */
  readonly edges: readonly Date[]
  readonly by: GpuGroup
  /** How many groups are told, those that took most first. */
  readonly limit: number
}

export interface GpuSums {
  /** One for each day on which something was computed, by its place among the edges. */
  readonly days: readonly (GpuSum & { readonly place: number })[]
  /** None for `day`. */
  readonly groups: readonly (GpuSum & { readonly name: string })[]
}

export interface GpuUseStore {
  read(query: GpuQuery): Promise<GpuSums>
  /** Of all attempts at a job that have ended. */
  ofJob(accountId: string, jobId: string): Promise<GpuSum>
  /** Forgets, oldest first, what ended before; returns how many rows went. */
  sweep(before: Date, limit: number): Promise<number>
}

/** Reports look back 400 days at most. */
export const GPU_USE_KEPT_MS = 401 * 86_400_000
const MAX_GROUPS = 1000

interface GpuWish extends Omit<UsageWish, 'by'> {
  readonly by: GpuGroup
}

export interface GpuReport {
  readonly from: Date
  readonly to: Date
  readonly timeZone: string
  readonly by: GpuGroup
  readonly total: GpuSum
  /** Every day of the period, also those on which nothing was computed. */
  readonly days: readonly (GpuSum & { readonly date: string })[]
  readonly groups: readonly (GpuSum & { readonly name: string })[]
  /** What is in no group: there are too many, or, by class, it was no node's. null: nothing, or it cannot be told. */
  readonly restMs: number | null
}

/** `accountId` null: of all accounts. Throws invalid_request. */
export type ReportGpuUse = (accountId: string | null, wish: GpuWish) => Promise<GpuReport>

export function createReportGpuUse(store: Pick<GpuUseStore, 'read'>, clock: Clock): ReportGpuUse {
  return async (accountId, { by, ...wish }) => {
    const { from, to, timeZone, dateOf } = readPeriod(wish, clock.now())
    const edges = toDayEdges(from, to, dateOf)
    const { days, groups } = await store.read({ accountId, edges, by, limit: MAX_GROUPS })
    const byPlace = new Map(days.map(({ place, ...sum }) => [place, sum]))
    const total = {
      ms: days.reduce((sum, { ms }) => sum + ms, 0),
      runs: days.reduce((sum, { runs }) => sum + runs, 0),
    }
    // A run counts for each of its weights, so the rows do not add up to what was computed.
    const restMs = total.ms - groups.reduce((sum, { ms }) => sum + ms, 0)
    return {
      ...{ from, to, timeZone, by, total, groups },
      days: edges.slice(0, -1).map((edge, place) => ({
        date: dateOf(edge),
        ...(byPlace.get(place) ?? { ms: 0, runs: 0 }),
      })),
      restMs: by === 'day' || by === 'weights' || restMs <= 0 ? null : restMs,
    }
  }
}
