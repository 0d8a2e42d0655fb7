/** Describes everything that went wrong in a run with dying engines. */
import type { FleetKillsReport } from './fleet-kills.ts'

export const LEASE_MS = 30_000
const RECOVERY_MS = LEASE_MS + 5_000

export interface Expected {
  readonly jobs: number
  /** Of all executions that came to their end, what each engine must have had at least. */
  readonly leastShare: number
  /** Whether jobs of a dead engine must have ended soon: only where nothing else keeps the machine busy. */
  readonly isTimed?: true
}

export function findFlaws(report: FleetKillsReport, { jobs, leastShare, isTimed }: Expected): string[] {
  const { succeeded, otherwise, split, begunTwice, doubled, strange, wrongOutputs, recoveriesMs } = report
  const all = split.reduce((sum, count) => sum + count, 0)
  const worstMs = Math.max(0, ...recoveriesMs)
  const flaws: [boolean, string][] = [
    [succeeded + otherwise.length !== jobs, `${jobs - succeeded - otherwise.length} jobs were lost`],
    [otherwise.length > 0, `${otherwise.length} jobs did not succeed: ${[...new Set(otherwise)]}`],
    [begunTwice > 0, `${begunTwice} attempts were begun twice`],
    [doubled > 0, `${doubled} attempts were executed twice`],
    [strange > 0, `${strange} executions belong to nobody`],
    [wrongOutputs > 0, `${wrongOutputs} jobs have other outputs than their own`],
    [Math.min(...split) < leastShare * all, `the split ${split} leaves somebody less than ${leastShare} of the work`],
    [isTimed === true && worstMs >= RECOVERY_MS, `a job of a dead engine took ${Math.round(worstMs)} ms`],
  ]
  return flaws.flatMap(([isFlaw, words]) => (isFlaw ? [words] : []))
}
