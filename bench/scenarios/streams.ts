/** 5,000 open event streams on one running job: what each keeps resident, and how long a progress frame takes to reach all. */

import { submitJob } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { forkServer } from '../kit/server-child.ts'

const STREAMS = 5000
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
  const reached = await sendProgress(atelier, clients)
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
  ]
}

type Child = Awaited<ReturnType<typeof forkServer>>

async function sendProgress(atelier: Child, clients: Child): Promise<number> {
  await clients.ask('expect', '"step":7')
  const startedAt = Date.now()
  await atelier.ask('progress', { value: 7, max: 9 })
  while (Date.now() - startedAt < GIVE_UP_MS) {
    const { received, lastReceivedAt } = await clients.ask<{ received: number; lastReceivedAt: number }>('received')
    if (received >= STREAMS) return lastReceivedAt - startedAt
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('the progress frame did not reach every stream')
}
