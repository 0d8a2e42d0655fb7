/**
 * `npm run test:chaos [minutes] [seed] [folder]`: four API nodes, four workers and six engines under load, while whatever can go wrong
 * does, as the seed decides. Ends with 1 when anything that a client was told does not hold. The folder gets the report.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { planFaults } from './faults/plan-faults.ts'
import { writeReport } from './report/write-report.ts'
import { runTrial } from './trial.ts'

const SHAPE = { apis: 4, workers: 4, engines: 6 }
const RATES = { jobs: 8, calls: 2, uploads: 0.9 }
const FAULT_EVERY_MS = 5000

const minutes = Number(process.argv[2] ?? 10)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007)
const reports = process.argv[4] ?? 'chaos-reports'
const lastsMs = minutes * 60_000
const startedMs = performance.now()
const say = (line: string) =>
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)} s  ${line}`)
console.log(`${minutes} minutes of chaos, seed ${seed}`)
const work = await mkdtemp(join(tmpdir(), 'atelier-chaos-'))
const faults = planFaults({ seed, lastsMs, shape: SHAPE, everyMs: FAULT_EVERY_MS })
const report = await runTrial({ seed, shape: SHAPE, rates: RATES, faults, lastsMs, say, keepIn: work })
const page = await writeReport(report, reports)
for (const { kind, text } of report.flaws) console.log(`${kind}: ${text.slice(0, 500)}`)
console.log(
  `${report.flaws.length === 0 ? 'everything that a client was told holds' : `${report.flaws.length} flaws`}: ${page}`,
)
if (report.flaws.length === 0) await rm(work, { recursive: true, force: true })
else console.log(`logs and journal: ${work}`)
process.exit(report.flaws.length === 0 ? 0 : 1)
