/**
 * `npm run test:chaos -- [minutes] [seed] [folder] [--nodes 4,4,6,1] [--rates 9,2.2,0.9] [--at-least 0,0,0] [--bus notify|nats] [--keep]`
 *
 * API nodes, workers, engines and how many of the workers join over HTTP, under load (jobs, model calls and uploads that begin each
 * second; at least so many of each in all), while whatever can go wrong does, as the seed decides. Even seeds have NATS between the
 * nodes, odd ones Postgres and live links. Ends with 1 when anything that a client was told does not hold. The folder gets the report;
 * logs and journal are kept when something is wrong, or when asked for.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findNatsProgram } from '../support/bus/nats-server.ts'
import { planFaults } from './faults/plan-faults.ts'
import type { LoadRates } from './load/main.ts'
import { writeReport } from './report/write-report.ts'
import { runTrial } from './trial.ts'
import type { BusKind } from './world/bus.ts'

const FAULT_EVERY_MS = 5000

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    bus: { type: 'string' },
    keep: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '4,4,6,1' },
    rates: { type: 'string', default: '9,2.2,0.9' },
    'at-least': { type: 'string', default: '0,0,0' },
  },
})
const [minutes = '10', seedText = String(Date.now() % 1_000_000_007), reports = 'chaos-reports'] = positionals
const seed = Number(seedText)
const [apis = 4, workers = 4, engines = 6, joined = 0] = values.nodes.split(',').map(Number)
const rates = toRates(values.rates)
const atLeast = toRates(values['at-least'])
const shape = { apis, workers, engines, joined, bytes: 'bucket', bus: pickBus() } as const
const lastsMs = Number(minutes) * 60_000
const startedMs = performance.now()
const say = (line: string) =>
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)} s  ${line}`)
// Whoever breaks a trial off leaves no process behind: all of them end with this one.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

console.log(`${minutes} minutes of chaos, seed ${seed}, bus ${shape.bus}`)
const work = await mkdtemp(join(tmpdir(), 'atelier-chaos-'))
const faults = planFaults({ seed, lastsMs, shape, everyMs: FAULT_EVERY_MS })
const report = await runTrial({ seed, shape, rates, faults, lastsMs, atLeast, say, keepIn: work })
const page = await writeReport(report, reports)
const { flaws } = report
for (const { kind, text } of flaws) console.log(`${kind}: ${text.slice(0, 500)}`)
console.log(`${flaws.length === 0 ? 'everything that a client was told holds' : `${flaws.length} flaws`}: ${page}`)
if (flaws.length === 0 && !values.keep) await rm(work, { recursive: true, force: true })
else console.log(`logs and journal: ${work}`)
process.exit(flaws.length === 0 ? 0 : 1)

function toRates(text: string): LoadRates {
  const [jobs = 0, calls = 0, uploads = 0] = text.split(',').map(Number)
  return { jobs, calls, uploads }
}

function pickBus(): BusKind {
  if ((values.bus ?? (seed % 2 === 0 ? 'nats' : 'notify')) !== 'nats') return 'notify'
  const found = findNatsProgram()
  if ('program' in found) return 'nats'
  console.log(`${found.missing}; nodes hear of each other by Postgres and live links instead`)
  return 'notify'
}
