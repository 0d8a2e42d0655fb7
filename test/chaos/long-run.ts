/**
 * `npm run test:chaos -- [minutes] [seed] [folder] [--nodes 4,4,6,1] [--rates 9,2,0.9]`: API nodes, workers, engines and
 * how many of the workers join over HTTP, under load (jobs, model
 * calls and uploads that begin each second), while whatever can go wrong does, as the seed decides. Ends with 1 when anything that a
 * client was told does not hold. The folder gets the report.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { planFaults } from './faults/plan-faults.ts'
import { writeReport } from './report/write-report.ts'
import { runTrial } from './trial.ts'

const FAULT_EVERY_MS = 5000

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { nodes: { type: 'string', default: '4,4,6,1' }, rates: { type: 'string', default: '9,2,0.9' } },
})
const [minutes = '10', seedText = String(Date.now() % 1_000_000_007), reports = 'chaos-reports'] = positionals
const seed = Number(seedText)
const [apis = 4, workers = 4, engines = 6, joined = 0] = values.nodes.split(',').map(Number)
const [jobs = 9, calls = 2, uploads = 0.9] = values.rates.split(',').map(Number)
const shape = { apis, workers, engines, joined, bytes: 'bucket' } as const
const lastsMs = Number(minutes) * 60_000
const startedMs = performance.now()
const say = (line: string) =>
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)} s  ${line}`)
// Whoever breaks a trial off leaves no process behind: all of them end with this one.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

console.log(`${minutes} minutes of chaos, seed ${seed}`)
const work = await mkdtemp(join(tmpdir(), 'atelier-chaos-'))
const faults = planFaults({ seed, lastsMs, shape, everyMs: FAULT_EVERY_MS })
const report = await runTrial({ seed, shape, rates: { jobs, calls, uploads }, faults, lastsMs, say, keepIn: work })
const page = await writeReport(report, reports)
const { flaws } = report
for (const { kind, text } of flaws) console.log(`${kind}: ${text.slice(0, 500)}`)
console.log(`${flaws.length === 0 ? 'everything that a client was told holds' : `${flaws.length} flaws`}: ${page}`)
if (flaws.length === 0) await rm(work, { recursive: true, force: true })
else console.log(`logs and journal: ${work}`)
process.exit(flaws.length === 0 ? 0 : 1)
