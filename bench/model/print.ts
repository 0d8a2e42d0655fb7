/**
 * `node bench/model/print.ts [measured.json]`: what services of several sizes need, out of what was measured (`npm run bench model`
 * measures it; without an argument, the measurement that is kept beside this file).
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { toTable } from '../kit/figure.ts'
import { findDeviations } from './check-model.ts'
import { LOADS, type Measured } from './costs.ts'
import { baseOf, findEnd, LIMITS, type Need, type Plan, PRICES, predict, toWords } from './predict.ts'

const file = process.argv[2] ?? fileURLToPath(new URL('measured.json', import.meta.url))
const measured = JSON.parse(readFileSync(file, 'utf8')) as Measured
const base = baseOf(measured.runs)

const SHAPE = { runSeconds: 10, progressSeconds: 2, busiestShare: 0.05, outputBytes: 2e6, retentionDays: 7 }
const PLANS: Readonly<Record<string, Plan>> = {
  'a team: 10 GPUs, 2 api': { ...SHAPE, jobsPerSecond: 1, apiNodes: 2, directWorkers: 10 },
  '100 GPUs, 4 api': { ...SHAPE, jobsPerSecond: 10, apiNodes: 4, directWorkers: 20 },
  '1,000 GPUs, 10 api, joined': { ...SHAPE, jobsPerSecond: 100, apiNodes: 10, directWorkers: 0 },
  '1,000 GPUs, 100 api, joined': { ...SHAPE, jobsPerSecond: 100, apiNodes: 100, directWorkers: 0 },
  '10,000 GPUs, 100 api, joined': { ...SHAPE, jobsPerSecond: 1000, apiNodes: 100, directWorkers: 0 },
  '100,000 GPUs, 500 api, joined': { ...SHAPE, jobsPerSecond: 10_000, apiNodes: 500, directWorkers: 0 },
}

console.log(`measured ${measured.measuredAt} on ${measured.machine}\n`)
console.log(
  toTable(
    LOADS.map((load) => {
      const { nodeMicros, postgresMicros, statements, notifies, logBytes } = base.perJob[load]
      const micros = [nodeMicros, postgresMicros].map((value) => `${(value / 1000).toFixed(1)} ms`)
      return [load, ...micros, statements.toFixed(1), notifies.toFixed(2), `${(logBytes / 1000).toFixed(1)} kB`]
    }),
    ['a job, one process', 'Atelier', 'Postgres', 'statements', 'notifies', 'log'],
  ),
)
for (const load of LOADS) {
  const { jobsPerSecond, by } = findEnd({ cost: base.perJob[load] })
  console.log(
    `\none Postgres (${LIMITS.postgresCores} busy cores) ends at ${jobsPerSecond.toFixed(0)} jobs/s by ${by}, ${load} processes`,
  )
}
console.log('')
console.log(
  toTable(
    Object.entries(PLANS).map(([name, plan]) => [
      name,
      ...toCells(predict(plan, { cost: base.perJob.heavy, idle: base.idlePerSecond })),
    ]),
    [
      'plan',
      'Atelier',
      'Postgres',
      'statements/s',
      'log',
      'connections',
      'deliveries/s',
      'rows',
      'bytes',
      'clusters',
      'first',
      '$ per million',
    ],
  ),
)
console.log('')
console.log(
  toTable(
    findDeviations(measured.runs).map(({ what, processes, predicted, measured: found, error }) => [
      ...[what, String(processes), predicted.toFixed(1), found.toFixed(1), `${(error * 100).toFixed(0)} %`],
    ]),
    ['model against measured', 'processes', 'predicted', 'measured', 'error'],
  ),
)
console.log(`\nprices: ${JSON.stringify(PRICES)}`)

function toCells(need: Need): string[] {
  const tera = (bytes: number) => (bytes < 1e12 ? `${(bytes / 1e9).toFixed(0)} GB` : `${(bytes / 1e12).toFixed(1)} TB`)
  return [
    `${need.atelierCores.toFixed(1)} cores`,
    `${need.postgresCores.toFixed(2)} cores`,
    need.statementsPerSecond.toFixed(0),
    `${(need.logBytesPerSecond / 1e6).toFixed(2)} MB/s`,
    String(need.connections),
    need.deliveriesPerSecond.toFixed(0),
    tera(need.databaseBytes),
    tera(need.objectBytes),
    String(need.shards),
    `${toWords(need.first.limit)}, ${(need.first.used * 100).toFixed(0)} %`,
    need.usdPerMillion.toFixed(2),
  ]
}
