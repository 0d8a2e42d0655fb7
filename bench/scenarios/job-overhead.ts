/** Submit to terminal frame as a client sees it, one job after the other, minus what the engine alone needs for the same graph. */

import { submitJob, waitForEnd } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { forkServer } from '../kit/server-child.ts'
import { freshWorkflow } from '../kit/workflows.ts'

const WARM_UP = 50
const JOBS = 300

export async function jobOverhead(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts')
  const whole: number[] = []
  for (let index = 0; index < WARM_UP + JOBS; index++) {
    const startedAt = performance.now()
    const job = await submitJob(atelier.url, freshWorkflow(index))
    await waitForEnd(atelier.url, job.id)
    if (index >= WARM_UP) whole.push(performance.now() - startedAt)
  }
  const engineAlone = await atelier.ask<number[]>('runEngine', { first: WARM_UP + JOBS, count: JOBS })
  const p50 = percentile(whole, 0.5)
  const engineP50 = percentile(engineAlone, 0.5)
  return [
    {
      name: 'submit to terminal beyond the engine, p50',
      measured: Math.max(0, p50 - engineP50),
      unit: 'ms',
      bar: 15,
      direction: 'at_most',
      detail: { p50, p99: percentile(whole, 0.99), engineP50 },
    },
  ]
}

function percentile(values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]
}
