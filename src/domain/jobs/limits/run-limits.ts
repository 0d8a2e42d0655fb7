/**
 * Bounds on the jobs of a scope: an endpoint, a link that was shared, whatever submits jobs in the name of an account and must not do so
 * without end. A job names the bounds that it has to fit into, and the transaction that records it checks and counts: a submit that is
 * refused, repeated under its key, or lost in a crash leaves no trace here. Jobs without bounds cost nothing.
 *
 * Periods are calendar periods in UTC. What a job costs counts in the period in which it was accepted: its hold while it lives, its
 * charge afterwards. Charges of the models that its nodes call are not part of it.
 */
import type { Micros } from '../../../../lib/text/usd.ts'

/** In the order of their lengths; `ever` ends never. */
const PERIODS = ['hour', 'day', 'month', 'ever'] as const
export type Period = (typeof PERIODS)[number]

export interface RunLimits {
  /** Jobs that wait or run at the same time; null: any number. */
  readonly inFlight: number | null
  /** Jobs that are accepted in a period, whatever becomes of them. */
  readonly runs: Readonly<Partial<Record<Period, number>>>
  /** What the jobs that are accepted in a period may cost together. */
  readonly spend: Readonly<Partial<Record<Period, Micros>>>
}

export const NO_LIMITS: RunLimits = { inFlight: null, runs: {}, spend: {} }

export interface RunBound {
  /** Unique within its account, such as `endpoint:portrait`. */
  readonly scope: string
  /** What a refusal calls it: `the endpoint portrait`. */
  readonly name: string
  readonly limits: RunLimits
}

/** What is left out stays; null takes a limit away. */
export interface LimitsChange {
  readonly inFlight?: number | null
  readonly runs?: Readonly<Partial<Record<Period, number | null>>>
  readonly spend?: Readonly<Partial<Record<Period, Micros | null>>>
}

export function changeLimits(limits: RunLimits, { inFlight = limits.inFlight, runs, spend }: LimitsChange): RunLimits {
  return { inFlight, runs: changePeriods(limits.runs, runs), spend: changePeriods(limits.spend, spend) }
}

function changePeriods(
  limits: RunLimits['runs'],
  change: Readonly<Partial<Record<Period, number | null>>> = {},
): RunLimits['runs'] {
  const wanted = PERIODS.map((period) => [period, change[period] === undefined ? limits[period] : change[period]])
  return Object.fromEntries(wanted.filter(([, most]) => typeof most === 'number'))
}

/** null: there is nothing to check. */
export function toBound(scope: string, name: string, limits: RunLimits): RunBound | null {
  const { inFlight, runs, spend } = limits
  const isOpen = inFlight === null && Object.keys(runs).length === 0 && Object.keys(spend).length === 0
  return isOpen ? null : { scope, name, limits }
}

/** What was counted in the period that began at `since`, in milliseconds since 1970. */
interface Tally {
  readonly since: number
  readonly runs: number
  readonly micros: Micros
}

export type Tallies = Readonly<Record<Period, Tally>>

export interface ScopeUse {
  /** Its jobs that wait or run. */
  readonly inFlight: number
  readonly tallies: Tallies
}

/** As the store counts: what is known of scopes beside a submit. */
export interface RunLimitStore {
  /** By scope; one in which nothing was ever counted is left out. */
  findUse(accountId: string, scopes: readonly string[]): Promise<ReadonlyMap<string, ScopeUse>>
  /** Its counts are dropped: they begin anew with the next job. */
  forget(accountId: string, scope: string): Promise<void>
}

/** Why a job does not fit. */
export interface RunExcess {
  readonly name: string
  readonly limit: 'in_flight' | 'runs' | 'spend'
  /** null: of jobs at a time. */
  readonly period: Period | null
  readonly most: number
  /** When the period ends; null: never, or it has none. */
  readonly until: Date | null
}

function startOf(period: Period, at: Date): number {
  switch (period) {
    case 'hour':
      return Math.floor(at.getTime() / 3_600_000) * 3_600_000
    case 'day':
      return Math.floor(at.getTime() / 86_400_000) * 86_400_000
    case 'month':
      return Date.UTC(at.getUTCFullYear(), at.getUTCMonth())
    case 'ever':
      return 0
  }
}

function endOf(period: Period, since: number): Date | null {
  switch (period) {
    case 'hour':
      return new Date(since + 3_600_000)
    case 'day':
      return new Date(since + 86_400_000)
    case 'month': {
      const start = new Date(since)
      return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1))
    }
    case 'ever':
      return null
  }
}

const forEach = (toTally: (period: Period) => Tally): Tallies => ({
  hour: toTally('hour'),
  day: toTally('day'),
  month: toTally('month'),
  ever: toTally('ever'),
})

export const NO_TALLIES: Tallies = forEach(() => ({ since: 0, runs: 0, micros: 0 }))

/** As they stand at this moment: a period that is over has begun anew. A clock that is behind does not turn one back. */
export function talliesAt(tallies: Tallies, at: Date): Tallies {
  return forEach((period) => {
    const since = startOf(period, at)
    return since > tallies[period].since ? { since, runs: 0, micros: 0 } : tallies[period]
  })
}

/** When a job counts that was submitted by a clock which may be behind: in no period that others have closed. */
export function countedAt(tallies: Tallies, at: Date): Date {
  return new Date(Math.max(at.getTime(), tallies.hour.since))
}

/** A job more. `at` as `countedAt` gave it. */
export function addRun(tallies: Tallies, at: Date, micros: Micros): Tallies {
  const now = talliesAt(tallies, at)
  return forEach((period) => {
    const { since, runs, micros: spent } = now[period]
    return { since, runs: runs + 1, micros: spent + micros }
  })
}

/** What a job counts from its end on: in the periods in which it was counted, as far as they still are. */
export function correctRun(
  tallies: Tallies,
  at: Date,
  change: { readonly runs: number; readonly micros: Micros },
): Tallies {
  return forEach((period) => {
    const tally = tallies[period]
    if (startOf(period, at) !== tally.since) return tally
    return { ...tally, runs: tally.runs + change.runs, micros: tally.micros + change.micros }
  })
}

/** The first bound in the way of one more job that will cost up to `micros`; null: it fits. */
export function findExcess(
  { name, limits }: RunBound,
  { inFlight, tallies }: ScopeUse,
  job: { readonly at: Date; readonly micros: Micros },
): RunExcess | null {
  if (limits.inFlight !== null && inFlight >= limits.inFlight)
    return { name, limit: 'in_flight', period: null, most: limits.inFlight, until: null }
  const now = talliesAt(tallies, countedAt(tallies, job.at))
  // The longest first: of several, it says when there is room again.
  for (const period of PERIODS.toReversed()) {
    const { since, runs, micros } = now[period]
    const [mostRuns, mostMicros] = [limits.runs[period], limits.spend[period]]
    const until = endOf(period, since)
    if (mostRuns !== undefined && runs + 1 > mostRuns) return { name, limit: 'runs', period, most: mostRuns, until }
    if (mostMicros !== undefined && job.micros + micros > mostMicros)
      return { name, limit: 'spend', period, most: mostMicros, until }
  }
  return null
}
