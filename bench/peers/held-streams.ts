/** How many event streams on one running job a service holds open at a time, and what they add to its memory. */
import { submitJob } from '../kit/client-steps.ts'
import { forkServer } from '../kit/server-child.ts'
import type { PeerProcess } from './peer-process.ts'

const STREAMS = 3000
const WITHIN_MS = 15_000

/** Computes nothing, and does not end by itself. Only the tests' ComfyUI server has this class. */
const ENDLESS_WORKFLOW = {
  '1': { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: 255 } },
  '2': { class_type: 'DemoSteps', inputs: { image: ['1', 0], steps: 1_000_000, ms: 1000, preview: false } },
  '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'bench' } },
}

export async function holdStreams(service: PeerProcess): Promise<{ held: number; addedMib: number }> {
  const { id } = await submitJob(service.url, ENDLESS_WORKFLOW)
  await using clients = await forkServer('bench/servers/stream-clients.ts', { url: service.url })
  const before = service.rssBytes()
  const path = `/api/v2/jobs/${id}/events`
  const held = await clients.ask<number>('try', { path, count: STREAMS, withinMs: WITHIN_MS })
  const addedMib = (service.rssBytes() - before) / 2 ** 20
  const canceled = await fetch(`${service.url}/api/v2/jobs/${id}/cancel`, { method: 'POST' })
  await canceled.arrayBuffer()
  return { held, addedMib }
}
