/** The tables of the model, as docs/scale.md shows them. */
import { toTable } from '../kit/figure.ts'
import { findDeviations, fitJobs } from './check-model.ts'
import { LOADS, type Measured } from './costs.ts'
import { findEnd, type Need, type Plan, predict, toWords } from './predict.ts'

const SHAPE = { runSeconds: 10, progressSeconds: 2, busiestShare: 0.05, outputBytes: 2e6, retentionDays: 7 }

export const PLANS: Readonly<Record<string, Plan>> = {
  '10 GPUs, 2 `api`': { ...SHAPE, jobsPerSecond: 1, apiNodes: 2, directWorkers: 10, withRoom: 5 },
  '100 GPUs, 4 `api`': { ...SHAPE, jobsPerSecond: 10, apiNodes: 4, directWorkers: 20, withRoom: 8 },
  '1,000 GPUs joined, 10 `api`': { ...SHAPE, jobsPerSecond: 100, apiNodes: 10, directWorkers: 0, withRoom: 200 },
  '1,000 GPUs joined, 100 `api`': { ...SHAPE, jobsPerSecond: 100, apiNodes: 100, directWorkers: 0, withRoom: 200 },
  '10,000 GPUs joined, 100 `api`': { ...SHAPE, jobsPerSecond: 1000, apiNodes: 100, directWorkers: 0, withRoom: 1000 },
  '100,000 GPUs joined, 500 `api`': {
    ...SHAPE,
    jobsPerSecond: 10_000,
    apiNodes: 500,
    directWorkers: 0,
    withRoom: 5000,
  },
}

/** What one costs, by how many processes shared the database. */
export function toCostTable({ runs }: Measured): string {
  const rows = runs.flatMap(({ processes, perJob, perSubmit, perPoll }) =>
    [
      ...LOADS.map((load) => [`a job, ${load} load`, perJob[load]] as const),
      ['a submit', perSubmit] as const,
      ['a poll', perPoll] as const,
    ].map(([what, cost]) => [
      what,
      String(processes),
      toMillis(cost.nodeMicros),
      toMillis(cost.postgresMicros),
      cost.statements.toFixed(cost.statements < 1 ? 2 : 1),
      cost.notifies.toFixed(2),
      `${(cost.logBytes / 1000).toFixed(1)} kB`,
    ]),
  )
  const order = [...new Set(rows.map(([what]) => what))]
  const sorted = rows.toSorted((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]))
  return toTable(sorted, ['what', 'processes', 'Atelier', 'Postgres', 'statements', 'NOTIFYs', 'log'])
}

function toMillis(micros: number): string {
  return `${(micros / 1000).toFixed(micros < 1000 ? 3 : 1)} ms`
}

/** Where one Postgres ends, if all its processes have little to do at a time, and if they have much. */
export function toEndTable(measured: Measured): string {
  const rows = LOADS.map((load) => {
    const { jobsPerSecond, by } = findEnd({ job: fitJobs(measured.runs, load) })
    return [load, `${(Math.round(jobsPerSecond / 10) * 10).toString()} jobs/s`, by]
  })
  return toTable(rows, ['load of a process', 'one Postgres ends at', 'by'])
}

export function toPlanTable(measured: Measured): string {
  const job = fitJobs(measured.runs, 'light')
  const [{ idlePerSecond: idle }] = measured.runs
  const rows = Object.entries(PLANS).map(([name, plan]) => {
    // Workers have few jobs at a time, however large the service is, so what they write is hardly shared.
    return [name, ...toCells(predict(plan, { job, idle }))]
  })
  return toTable(rows, [
    ...['plan', 'Atelier', 'Postgres', 'log', 'connections', 'notices delivered', 'rows, 7 days', 'bytes, 7 days'],
    ...['clusters', 'what ends first', '$ per million jobs'],
  ])
}

function toCells(need: Need): string[] {
  const { limit, used } = need.first
  return [
    `${need.atelierCores.toFixed(1)} cores`,
    `${need.postgresCores.toFixed(2)} cores`,
    `${(need.logBytesPerSecond / 1e6).toFixed(2)} MB/s`,
    String(need.connections),
    `${need.deliveriesPerSecond}/s`,
    toBytes(need.databaseBytes),
    toBytes(need.objectBytes),
    String(need.shards),
    `${toWords(limit)}, at ${(used * 100).toFixed(0)} %`,
    need.usdPerMillion.toFixed(2),
  ]
}

function toBytes(bytes: number): string {
  return bytes < 1e12 ? `${(bytes / 1e9).toFixed(0)} GB` : `${(bytes / 1e12).toFixed(1)} TB`
}

/** What the model, fed with the run of one process, says of several, and what they were measured to cost. */
export function toErrorTable({ runs }: Measured): string {
  const rows = findDeviations(runs).map(({ what, processes, predicted, measured, error }) => [
    what,
    String(processes),
    predicted.toFixed(1),
    measured.toFixed(1),
    `${error < 0 ? '−' : '+'}${Math.abs(error * 100).toFixed(0)} %`,
  ])
  return toTable(rows, ['model against measured', 'processes', 'predicted', 'measured', 'error'])
}
