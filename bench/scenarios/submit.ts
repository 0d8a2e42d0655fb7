/**
 * Durable submits over 64 connections without execution, against a bare server with one row per submit, and against the service without
 * fsync; and a thousand jobs as one batch, against a bare server that writes the same rows in one transaction.
 */
import type { Figure } from '../kit/figure.ts'
import { alternate, measureLoad } from '../kit/load.ts'
import { forkServer } from '../kit/server-child.ts'
import { freshWorkflow, TRIVIAL_WORKFLOW } from '../kit/workflows.ts'

const ROUND = {
  path: '/api/v2/jobs',
  method: 'POST',
  body: JSON.stringify({ workflow: TRIVIAL_WORKFLOW }),
  headers: { 'content-type': 'application/json' },
  connections: 64,
  seconds: 4,
  expectStatus: 201,
} as const

const BATCH = {
  ...ROUND,
  path: '/api/v2/jobs/batch',
  body: JSON.stringify({ jobs: Array.from({ length: 1000 }, (_, index) => ({ workflow: freshWorkflow(index) })) }),
  connections: 1,
} as const

const accepting = { workers: 0, maxQueue: 10_000_000 }

export async function submit(): Promise<Figure[]> {
  return [...(await measureSubmits()), await measureBatches()]
}

async function measureBatches(): Promise<Figure> {
  await using atelier = await forkServer('bench/servers/atelier.ts', accepting)
  await using bare = await forkServer('bench/servers/bare-batch.ts')
  for (const server of [atelier, bare]) await measureLoad(server, BATCH)
  await atelier.ask('longestTurnMs')
  const results = await alternate(3, {
    bare: () => measureLoad(bare, BATCH),
    atelier: () => measureLoad(atelier, BATCH),
  })
  const longestTurnMs = await atelier.ask<number>('longestTurnMs')
  return {
    name: 'a batch of 1,000 jobs against the same rows in one transaction',
    measured: results.bare.requestsPerSecond / results.atelier.requestsPerSecond,
    unit: '×',
    bar: 1.5,
    direction: 'at_most',
    detail: { ...results, longestTurnMs },
  }
}

async function measureSubmits(): Promise<Figure[]> {
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
