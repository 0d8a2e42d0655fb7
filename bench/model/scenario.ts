/**
 * Jobs, submits and polls on 1, 2 and 4 processes over one Postgres: what one costs, and how far the model of bench/model is off for
 * four. Writes bench/results/model.json, which `node bench/model/print.ts` reads.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import type { Figure } from '../kit/figure.ts'
import { type Deviation, findDeviations } from './check-model.ts'
import type { Measured, MeasuredRun } from './costs.ts'
import { measureCluster } from './measure-cluster.ts'

const PROCESSES = [1, 2, 4]

export async function model(): Promise<Figure[]> {
  const runs: MeasuredRun[] = []
  for (const processes of PROCESSES) {
    console.error(`  ${processes} processes …`)
    runs.push(await measureCluster(processes))
  }
  const machine = `${cpus().length} cores, ${cpus()[0]?.model ?? 'unknown'}`
  const measured: Measured = { measuredAt: new Date().toISOString().slice(0, 10), machine, runs }
  mkdirSync('bench/results', { recursive: true })
  writeFileSync('bench/results/model.json', `${JSON.stringify(measured, null, 2)}\n`)
  const deviations = findDeviations(runs)
  const four = runs[2]
  const detail = { runs, deviations }
  return [
    {
      name: 'model: largest error for statements and log of a job on 4 processes',
      measured: largest(deviations, /^job.*(statements|logBytes)$/),
      ...{ unit: '%', bar: 0.25, direction: 'at_most', detail },
    },
    {
      name: 'model: largest error for CPU time of a job on 4 processes',
      measured: largest(deviations, /^job.*Micros$/),
      ...{ unit: '%', bar: 0.5, direction: 'at_most', detail },
    },
    {
      name: 'Postgres: its share of the CPU time of submits to 4 processes',
      measured: four.perSubmit.postgresMicros / (four.perSubmit.postgresMicros + four.perSubmit.nodeMicros),
      ...{ unit: '%', bar: 0.5, direction: 'at_most', detail },
    },
  ]
}

function largest(deviations: readonly Deviation[], what: RegExp): number {
  return Math.max(...deviations.filter((deviation) => what.test(deviation.what)).map(({ error }) => Math.abs(error)))
}
