/**
 * The Model Router with everything on: schema, idempotency record, hold and settlement, all durable. Its overhead against
 * calling the provider directly, and its throughput against a bare forwarder.
 */
import { type CallTimes, measureCalls, medianOf } from '../../kit/call-times.ts'
import type { Figure } from '../../kit/figure.ts'
import { alternate, type LoadOptions, type LoadResult, measureLoad } from '../../kit/load.ts'
import { forkServer, type ServerChild } from '../../kit/server-child.ts'

const BODY = JSON.stringify({ prompt: 'a lighthouse at dusk, oil on canvas', n: 1 })
const CONNECTIONS = 16
const SECONDS = 4
// Warm-up calls, until the runtime has compiled the code of a call, which is more than a forwarder's.
const WARM_UP_SECONDS = 8
const LOAD = { connections: CONNECTIONS, seconds: SECONDS, body: BODY }

export async function router(): Promise<Figure[]> {
  return [...(await overhead()), ...(await throughput())]
}

async function overhead(): Promise<Figure[]> {
  await using provider = await forkServer('bench/servers/fake-provider.ts', { latencyMs: 22 })
  await using service = await forkServer('bench/servers/router.ts', { providerUrl: provider.url })
  await using bare = await forkServer('bench/servers/bare-forwarder.ts', { providerUrl: provider.url })
  const key = await service.ask<string>('key')
  const targets = {
    direct: { url: `${provider.url}/generate`, headers: {} },
    // The overhead of any process in between on this machine: no router can add less.
    forwarded: { url: `${bare.url}/generate`, headers: {} },
    routed: { url: `${service.url}/v2/models/bench/direct`, headers: { 'x-api-key': key } },
  }
  const rounds = { direct: [] as CallTimes[], forwarded: [] as CallTimes[], routed: [] as CallTimes[] }
  const names = ['direct', 'forwarded', 'routed'] as const
  for (const name of names) await measureCalls(targets[name], { ...LOAD, seconds: WARM_UP_SECONDS })
  for (let round = 0; round < 5; round++)
    for (const name of names) rounds[name].push(await measureCalls(targets[name], LOAD))
  const added = (name: 'forwarded' | 'routed', share: 'p50' | 'p99') =>
    medianOf(rounds[name], share) - medianOf(rounds.direct, share)
  const figure = { unit: 'ms', direction: 'at_most' as const, detail: rounds }
  const toName = (share: string, forwarded: number) =>
    `router: added to a 22 ms answer, ${share} (a bare forwarder: ${forwarded.toFixed(2)} ms)`
  return [
    { ...figure, name: toName('median', added('forwarded', 'p50')), measured: added('routed', 'p50'), bar: 1 },
    { ...figure, name: toName('99 of 100', added('forwarded', 'p99')), measured: added('routed', 'p99'), bar: 4 },
  ]
}

async function throughput(): Promise<Figure[]> {
  await using provider = await forkServer('bench/servers/fake-provider.ts', { latencyMs: 0 })
  await using service = await forkServer('bench/servers/router.ts', { providerUrl: provider.url })
  await using bare = await forkServer('bench/servers/bare-forwarder.ts', { providerUrl: provider.url })
  const key = await service.ask<string>('key')
  const round = (path: string, headers: Record<string, string>): LoadOptions => ({
    path,
    method: 'POST',
    body: BODY,
    headers: { 'content-type': 'application/json', ...headers },
    connections: CONNECTIONS,
    seconds: SECONDS,
    expectStatus: 200,
    // Every call has a key of its own: otherwise all but the first would be replays.
    uniqueHeader: 'idempotency-key',
  })
  const run = (server: ServerChild, path: string, headers = {}): Promise<LoadResult> =>
    measureLoad(server, round(path, headers))
  const routed = () => run(service, '/v2/models/bench/direct', { 'x-api-key': key })
  const forwarded = () => run(bare, '/generate')
  for (let round = 0; round * SECONDS < WARM_UP_SECONDS; round++) await routed()
  await forwarded()
  const results = await alternate(3, { forwarded, routed })
  return [
    {
      name: 'router: calls per second against a bare forwarder',
      measured: results.routed.requestsPerSecond / results.forwarded.requestsPerSecond,
      unit: '%',
      bar: 0.4,
      direction: 'at_least',
      detail: { forwarder: results.forwarded, router: results.routed },
    },
  ]
}
