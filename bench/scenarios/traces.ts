/** What traces cost a durable submit: with every submit told to a collector, against the same service without traces. */
import type { Figure } from '../kit/figure.ts'
import { alternate, measureLoad } from '../kit/load.ts'
import { forkServer } from '../kit/server-child.ts'
import { TRIVIAL_WORKFLOW } from '../kit/workflows.ts'

const ROUND = {
  path: '/api/v2/jobs',
  method: 'POST',
  body: JSON.stringify({ workflow: TRIVIAL_WORKFLOW }),
  headers: {
    'content-type': 'application/json',
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  },
  connections: 64,
  seconds: 3,
  expectStatus: 201,
} as const

const ROUNDS = 5

export async function traces(): Promise<Figure[]> {
  await using collector = await forkServer('bench/servers/bare-get.ts', { body: '{}' })
  const accepting = { workers: 0, maxQueue: 10_000_000 }
  await using off = await forkServer('bench/servers/atelier.ts', accepting)
  await using on = await forkServer('bench/servers/atelier.ts', { ...accepting, otlpEndpoint: collector.url })
  for (const server of [off, on]) await measureLoad(server, { ...ROUND, seconds: 2 })
  const results = await alternate(ROUNDS, {
    off: () => measureLoad(off, ROUND),
    on: () => measureLoad(on, ROUND),
  })
  return [
    {
      name: 'durable submits with traces against those without',
      measured: results.on.requestsPerSecond / results.off.requestsPerSecond,
      unit: '%',
      bar: 0.75,
      direction: 'at_least',
      detail: results,
    },
  ]
}
