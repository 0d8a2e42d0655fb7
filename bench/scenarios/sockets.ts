/**
 * 2,000 sockets of the Legacy v1 API on one busy job with ten previews a second, and one more that stops reading: whether
 * every reader that reads gets every event in order, whether the stalled one is dropped, and what it all keeps resident.
 */

import { submitJob } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { forkServer, type ServerChild } from '../kit/server-child.ts'

const SOCKETS = 2000
const EVERY_MS = 100
// Long enough for the stalled reader to fall so far behind that the service notices.
const STEPS = 300
const PREVIEW_BYTES = 4096
const GIVE_UP_MS = 60_000

interface Report {
  readonly readers: number
  readonly complete: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
}

export async function sockets(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts', { engine: 'held' })
  await submitJob(atelier.url)
  await atelier.ask('waitForRun')
  await using clients = await forkServer('bench/servers/socket-clients.ts', { url: atelier.url })
  const before = await atelier.settledUsage()
  await clients.ask('open', { count: SOCKETS, stalled: 1 })
  const open = await atelier.settledUsage()
  const startedAt = Date.now()
  await atelier.ask('sample', { steps: STEPS, everyMs: EVERY_MS, previewBytes: PREVIEW_BYTES })
  const sampledMs = Date.now() - startedAt
  const after = await atelier.usage()
  const report = await untilComplete(clients)
  const settled = await atelier.settledUsage()
  const closed = await readGauge(atelier, 'atelier_socket_readers_closed')
  const frames = STEPS * SOCKETS * 3
  return [
    {
      name: `sockets that got every event in order (of ${SOCKETS}, ${1000 / EVERY_MS} previews a second)`,
      measured: report.complete / SOCKETS,
      unit: '%',
      bar: 1,
      direction: 'at_least',
      detail: { ...report, sampledMs, cpuMicrosPerFrame: (after.cpuMicros - open.cpuMicros) / frames },
    },
    {
      name: 'stalled readers dropped (of 1)',
      measured: closed,
      unit: '',
      bar: 1,
      direction: 'at_least',
      detail: { previewsDropped: await readGauge(atelier, 'atelier_socket_previews_dropped') },
    },
    {
      name: 'a preview to its reader, 99th percentile',
      measured: report.p99Ms,
      unit: 'ms',
      bar: 1000,
      direction: 'at_most',
      detail: { p50Ms: report.p50Ms, worstMs: report.worstMs },
    },
    {
      name: `resident memory per open socket (${SOCKETS})`,
      measured: (open.rssBytes - before.rssBytes) / SOCKETS / 1024,
      unit: 'KiB',
      bar: 48,
      direction: 'at_most',
      detail: { before: before.rssBytes, open: open.rssBytes, afterSampling: settled.rssBytes },
    },
    {
      name: 'resident memory after the sampling, above before',
      measured: (settled.rssBytes - open.rssBytes) / 1_048_576,
      unit: 'MiB',
      bar: 64,
      direction: 'at_most',
      detail: { open: open.rssBytes, afterSampling: settled.rssBytes },
    },
  ]
}

/** The last frames are still under way when the engine has said everything. */
async function untilComplete(clients: ServerChild): Promise<Report> {
  const startedAt = Date.now()
  for (;;) {
    const report = await clients.ask<Report>('report', { steps: STEPS })
    if (report.complete === report.readers || Date.now() - startedAt > GIVE_UP_MS) return report
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

async function readGauge(atelier: ServerChild, name: string): Promise<number> {
  const text = await (await fetch(`${atelier.url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}
