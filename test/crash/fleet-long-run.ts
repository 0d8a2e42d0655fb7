/** `node test/crash/fleet-long-run.ts [jobs]`: three engines, two thousand jobs, one engine killed every five seconds. */
import { runFleetKills } from './fleet-kills.ts'

const jobs = Number(process.argv[2] ?? 2000)
const report = await runFleetKills({
  engines: 3,
  jobs,
  inFlight: 60,
  killEveryMs: 5000,
  downMs: 2000,
  nodeMs: 50,
  say: (line) => console.log(line),
})
const { recoveriesMs, ...rest } = report
const worstMs = Math.max(0, ...recoveriesMs)
console.log(JSON.stringify({ ...rest, recoveries: recoveriesMs.length, worstRecoveryMs: Math.round(worstMs) }, null, 2))
const isSound = report.succeeded === jobs && report.doubled === 0 && report.wrongOutputs === 0 && worstMs < 35_000
process.exitCode = isSound ? 0 : 1
