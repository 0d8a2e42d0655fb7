/**
 * A long series of trivial jobs: the memory of the service while they run, and after it has been idle. Retention removes the
 * jobs meanwhile, so memory that stays is a leak.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Figure } from '../../kit/figure.ts'
import { forkServer, type ServerChild } from '../../kit/server-child.ts'
import { textWorkflow } from '../../kit/workflows.ts'

const JOBS = 300_000
const SAMPLE_EVERY = 10_000
// By then the caches are full and the code is compiled.
const WARM_UP = 30_000
const CLIENTS = 16
const REST_MS = 600_000
const MIB = 1_048_576

/** Keeps the queue from filling up: a refused submit waits and is sent again. */
async function submitAll(atelier: ServerChild, onSubmitted: (count: number) => Promise<void>): Promise<void> {
  const dispatcher = new Agent({ connections: CLIENTS })
  let next = 0
  async function submitOne(index: number): Promise<void> {
    while (true) {
      const body = JSON.stringify({ workflow: textWorkflow(index) })
      const answer = await request(`${atelier.url}/api/v2/jobs`, { method: 'POST', body, dispatcher })
      const text = await answer.body.text()
      if (answer.statusCode === 201) return
      if (answer.statusCode !== 429 && answer.statusCode !== 503) throw new Error(`${answer.statusCode}: ${text}`)
      await sleep(250)
    }
  }
  async function client(): Promise<void> {
    while (next < JOBS) {
      const index = next++
      await submitOne(index)
      if (index % SAMPLE_EVERY === 0) await onSubmitted(index)
    }
  }
  try {
    await Promise.all(Array.from({ length: CLIENTS }, client))
  } finally {
    await dispatcher.close()
  }
}

const medianOf = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

export async function memoryOfJobs(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts', { retention: '60s', blobGrace: '60s' })
  const samples: number[] = []
  await submitAll(atelier, async (count) => {
    if (count >= WARM_UP) samples.push((await atelier.usage()).rssBytes)
  })
  await sleep(REST_MS)
  const rested = (await atelier.usage()).rssBytes
  const third = Math.floor(samples.length / 3)
  const [first, last] = [medianOf(samples.slice(0, third)), medianOf(samples.slice(-third))]
  return [
    {
      name: `resident memory after ${JOBS.toLocaleString('en')} trivial jobs and ten minutes of rest`,
      measured: rested / MIB,
      unit: 'MiB',
      bar: 300,
      direction: 'at_most',
      detail: { samplesMiB: samples.map((bytes) => Math.round(bytes / MIB)) },
    },
    {
      name: 'the same under load, last third of the jobs above the first',
      measured: last / first - 1,
      unit: '%',
      bar: 0.05,
      direction: 'at_most',
      detail: { firstMiB: Math.round(first / MIB), lastMiB: Math.round(last / MIB) },
    },
  ]
}
