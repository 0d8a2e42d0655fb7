/**
 * The Model Router with everything on: schema, idempotency record, hold and settlement, all durable. Its overhead against
 * calling the provider directly, and its throughput against a bare forwarder.
 */
import autocannon from 'autocannon'
import type { Figure } from '../kit/figure.ts'
import { alternate, type LoadOptions, type LoadResult, measureLoad } from '../kit/load.ts'
import { forkServer, type ServerChild } from '../kit/server-child.ts'

const BODY = JSON.stringify({ prompt: 'a lighthouse at dusk, oil on canvas', n: 1 })
const CONNECTIONS = 16
const SECONDS = 4
// Warm-up calls, until the runtime has compiled the code of a call, which is more than a forwarder's.
const WARM_UP_SECONDS = 8

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
  const rounds = { direct: [] as Latency[], forwarded: [] as Latency[], routed: [] as Latency[] }
  const names = ['direct', 'forwarded', 'routed'] as const
  for (const name of names) await measureLatency(targets[name], WARM_UP_SECONDS)
  for (let round = 0; round < 5; round++)
    for (const name of names) rounds[name].push(await measureLatency(targets[name], SECONDS))
  const added = (name: 'forwarded' | 'routed', share: keyof Latency) =>
    median(rounds[name], share) - median(rounds.direct, share)
  const figure = { unit: 'ms', direction: 'at_most' as const, detail: rounds }
  const toName = (share: string, forwarded: number) =>
    `router: added to a 22 ms answer, ${share} (a bare forwarder: ${forwarded.toFixed(2)} ms)`
  return [
    { ...figure, name: toName('median', added('forwarded', 'p50')), measured: added('routed', 'p50'), bar: 1 },
    { ...figure, name: toName('99 of 100', added('forwarded', 'p99')), measured: added('routed', 'p99'), bar: 4 },
  ]
}

interface Latency {
  readonly p50: number
  readonly p99: number
}

function median(rounds: readonly Latency[], share: keyof Latency): number {
  return rounds.map((round) => round[share]).toSorted((a, b) => a - b)[Math.floor(rounds.length / 2)]
}

interface Target {
  readonly url: string
  readonly headers: Record<string, string>
}

/** autocannon's histogram has whole milliseconds; the bar is one. So every answer is timed here. */
function measureLatency({ url, headers }: Target, seconds: number): Promise<Latency> {
  const times: number[] = []
  const { promise, resolve, reject } = Promise.withResolvers<Latency>()
  let count = 0
  const run = autocannon(
    {
      url,
      connections: CONNECTIONS,
      duration: seconds,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: BODY,
      setupClient(client) {
        client.setHeaders({
          'content-type': 'application/json',
          'idempotency-key': `k${Date.now()}-${count++}`,
          ...headers,
        })
      },
    },
    (error, result) => {
      if (error) return reject(error)
      if (result.non2xx > 0 || result.errors > 0) return reject(new Error(`${url}: ${result.non2xx} refused`))
      times.sort((a, b) => a - b)
      resolve({ p50: times[Math.floor(times.length * 0.5)], p99: times[Math.floor(times.length * 0.99)] })
    },
  )
  run.on('response', (client, _status, _bytes, milliseconds) => {
    times.push(milliseconds)
    client.setHeaders({
      'content-type': 'application/json',
      'idempotency-key': `k${Date.now()}-${count++}`,
      ...headers,
    })
  })
  return promise
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
