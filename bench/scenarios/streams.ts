/**
 * Thousands of open event streams on one running job: what each keeps resident, and how long a progress frame takes to reach all,
 * alone and while jobs are submitted.
 */

import { submitJob } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { forkServer } from '../kit/server-child.ts'

const STREAMS = 5000
const MANY = 10_000
const SUBMITS_A_SECOND = 200
const FRAMES = 20
const FRAME_EVERY_MS = 400
// Of two digits, so that no step is the beginning of another.
const FIRST_STEP = 11
const MAX_STEP = 99
const GIVE_UP_MS = 20_000

export async function streams(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts', { engine: 'held' })
  const job = await submitJob(atelier.url)
  await atelier.ask('waitForRun')
  await using clients = await forkServer('bench/servers/stream-clients.ts', { url: atelier.url })
  const path = `/api/v2/jobs/${job.id}/events`
  await clients.ask('open', { path, count: 50 })
  const before = await atelier.settledUsage()
  await clients.ask('open', { path, count: STREAMS + 50 })
  const after = await atelier.settledUsage()
  const reached = await sendProgress(atelier, clients, { step: 7, count: STREAMS })
  await clients.ask('open', { path, count: MANY })
  const amongSubmits = await sendAmongSubmits(atelier, clients)
  return [
    {
      name: `resident memory per open event stream (${STREAMS})`,
      measured: (after.rssBytes - before.rssBytes) / STREAMS / 1024,
      unit: 'KiB',
      bar: 24,
      direction: 'at_most',
      detail: { before: before.rssBytes, after: after.rssBytes },
    },
    {
      name: 'one progress frame to all streams',
      measured: reached,
      unit: 'ms',
      bar: 1000,
      direction: 'at_most',
      detail: { streams: STREAMS },
    },
    {
      name: `the slowest of ${FRAMES} frames to all of ${MANY} streams, ${SUBMITS_A_SECOND} submits a second beside it`,
      measured: Math.max(...amongSubmits.times),
      unit: 'ms',
      bar: 1000,
      direction: 'at_most',
      detail: amongSubmits,
    },
  ]
}

async function sendAmongSubmits(atelier: Child, clients: Child): Promise<{ times: number[]; submits: number }> {
  let submits = 0
  const failures: unknown[] = []
  const submitting = setInterval(() => {
    submits++
    submitJob(atelier.url).catch((error: unknown) => failures.push(error))
  }, 1000 / SUBMITS_A_SECOND)
  try {
    const times: number[] = []
    for (let frame = 0; frame < FRAMES; frame++) {
      times.push(await sendProgress(atelier, clients, { step: frame + FIRST_STEP, count: MANY }))
      await new Promise((resolve) => setTimeout(resolve, FRAME_EVERY_MS))
    }
    if (failures.length > 0) throw failures[0]
    return { times, submits }
  } finally {
    clearInterval(submitting)
  }
}

type Child = Awaited<ReturnType<typeof forkServer>>

interface Progress {
  readonly step: number
  /** How many streams are to get it. */
  readonly count: number
}

/** The time until the last stream has it. */
async function sendProgress(atelier: Child, clients: Child, { step, count }: Progress): Promise<number> {
  await clients.ask('expect', `"step":${step}`)
  const startedAt = Date.now()
  await atelier.ask('progress', { value: step, max: MAX_STEP })
  for (;;) {
    const { received, lastReceivedAt } = await clients.ask<{ received: number; lastReceivedAt: number }>('received')
    if (received >= count) return lastReceivedAt - startedAt
    if (Date.now() - startedAt > GIVE_UP_MS) throw new Error(`step ${step} reached ${received} of ${count} streams`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
