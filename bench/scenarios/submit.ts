/** Durable submits over 64 connections without execution, against a bare server with one row per submit, and against the service without fsync. */
import type { Figure } from '../kit/figure.ts'
import { alternate, measureLoad } from '../kit/load.ts'
import { forkServer } from '../kit/server-child.ts'
import { TRIVIAL_WORKFLOW } from '../kit/workflows.ts'

const ROUND = {
  path: '/api/v2/jobs',
  method: 'POST',
  body: JSON.stringify({ workflow: TRIVIAL_WORKFLOW }),
  headers: { 'content-type': 'application/json' },
  connections: 64,
  seconds: 4,
  expectStatus: 201,
} as const

export async function submit(): Promise<Figure[]> {
  const accepting = { workers: 0, maxQueue: 10_000_000 }
  await using full = await forkServer('bench/servers/atelier.ts', { ...accepting, synchronous: 'full' })
  await using normal = await forkServer('bench/servers/atelier.ts', { ...accepting, synchronous: 'normal' })
  await using bare = await forkServer('bench/servers/bare-submit.ts')
  for (const server of [full, normal, bare]) await measureLoad(server, { ...ROUND, seconds: 2 })
  const results = await alternate(3, {
    bare: () => measureLoad(bare, ROUND),
    full: () => measureLoad(full, ROUND),
    normal: () => measureLoad(normal, ROUND),
  })
  return [
    {
      name: 'durable submits against a bare server inserting one row',
      measured: results.full.requestsPerSecond / results.bare.requestsPerSecond,
      unit: '%',
      bar: 0.45,
      direction: 'at_least',
      detail: { bare: results.bare, atelier: results.full },
    },
    {
      name: 'durable submits against our own without fsync',
      measured: results.full.requestsPerSecond / results.normal.requestsPerSecond,
      unit: '%',
      bar: 0.9,
      direction: 'at_least',
      detail: { full: results.full, normal: results.normal },
    },
  ]
}
