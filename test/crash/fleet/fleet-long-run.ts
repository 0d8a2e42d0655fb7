/**
 * `node test/crash/fleet/fleet-long-run.ts [jobs]`: three engines in processes of their own, two thousand jobs, one engine killed every five
 * seconds. Each must have had a quarter of the work: its fair third, less what its deaths and the others' luck may cost it.
 */
import { findFlaws } from './fleet-flaws.ts'
import { runFleetKills } from './fleet-kills.ts'

const LEAST_SHARE = 0.25

const jobs = Number(process.argv[2] ?? 2000)
const report = await runFleetKills({
  engines: 3,
  jobs,
  inFlight: 60,
  killEvery: { ms: 5000 },
  downMs: 1000,
  nodeMs: 50,
  say: (line) => console.log(line),
})
const { recoveriesMs, ...rest } = report
const sorted = recoveriesMs.toSorted((one, other) => one - other)
const flaws = findFlaws(report, { jobs, leastShare: LEAST_SHARE, isTimed: true })
const recovery = {
  jobs: sorted.length,
  medianMs: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
  worstMs: Math.round(sorted.at(-1) ?? 0),
}
console.log(JSON.stringify({ ...rest, recovery, flaws }, null, 2))
process.exitCode = flaws.length === 0 ? 0 : 1
