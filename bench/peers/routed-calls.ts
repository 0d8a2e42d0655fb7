/**
 * One chat call through each router, in turns: what it adds to an answer that takes 22 ms, and how many calls a second it passes on when
 * answers take none. Ours runs as users run it: by the rules of a shipped provider, with an idempotency record, a hold and a settlement, all
 * durable. The peers keep and bill nothing.
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallTimes, measureCalls, medianOf } from '../kit/call-times.ts'
import { forkServer } from '../kit/server-child.ts'
import { findPeer } from './found-peers.ts'
import { type PeerProcess, startPeer } from './peer-process.ts'

const LOAD = {
  connections: 16,
  seconds: 4,
  body: JSON.stringify({
    model: 'bench',
    messages: [{ role: 'user', content: 'a lighthouse at dusk, oil on canvas' }],
  }),
}
const WARM_UP_SECONDS = 8
const ROUNDS = 5
const ANSWER_MS = 22
// It does not start without one.
const LITELLM_KEY = `sk-${randomBytes(24).toString('hex')}`

export interface RoutedRow {
  readonly router: string
  readonly added: Spread<'p50' | 'p99'>
  readonly perSecond: Spread<'perSecond'>
}

/** The median of the rounds, and the least and the most of them. */
type Spread<Key extends string> = Readonly<Record<Key, readonly [median: number, least: number, most: number]>>

interface Router {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export async function measureRouted(): Promise<readonly RoutedRow[]> {
  const slow = await measureAll(ANSWER_MS)
  const fast = await measureAll(0)
  const direct = slow.get('no router') ?? []
  return [...slow.entries()].map(([router, rounds]) => ({
    router,
    added: {
      p50: toSpread(rounds.map(({ p50 }) => p50 - medianOf(direct, 'p50'))),
      p99: toSpread(rounds.map(({ p99 }) => p99 - medianOf(direct, 'p99'))),
    },
    perSecond: { perSecond: toSpread((fast.get(router) ?? []).map(({ perSecond }) => perSecond)) },
  }))
}

async function measureAll(latencyMs: number): Promise<ReadonlyMap<string, readonly CallTimes[]>> {
  await using stack = new AsyncDisposableStack()
  const routers = await openRouters(stack, latencyMs)
  const rounds = new Map<string, CallTimes[]>()
  for (const router of routers.values()) await measureCalls(router, { ...LOAD, seconds: WARM_UP_SECONDS })
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, router] of routers) {
      rounds.set(name, [...(rounds.get(name) ?? []), await measureCalls(router, LOAD)])
    }
  return rounds
}

async function openRouters(stack: AsyncDisposableStack, latencyMs: number): Promise<ReadonlyMap<string, Router>> {
  const provider = stack.use(await forkServer('bench/servers/fake-provider.ts', { latencyMs }))
  const settings = { providerUrl: provider.url }
  const ours = stack.use(await forkServer('bench/servers/router.ts', { ...settings, adapter: 'declarative' }))
  const bare = stack.use(await forkServer('bench/servers/bare-forwarder.ts', settings))
  const routers = new Map<string, Router>([
    ['no router', { url: `${provider.url}/v1/chat/completions`, headers: {} }],
    ['bare forwarder', { url: `${bare.url}/v1/chat/completions`, headers: {} }],
    [
      'Atelier',
      {
        url: `${ours.url}/v2/models/openrouter/chat-completions`,
        headers: { 'x-api-key': await ours.ask<string>('key') },
      },
    ],
  ])
  const portkey = await startPortkey()
  if (portkey !== null)
    routers.set('Portkey gateway', {
      url: `${stack.use(portkey).url}/v1/chat/completions`,
      headers: {
        authorization: 'Bearer bench',
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${provider.url}/v1`,
      },
    })
  const litellm = await startLitellm(`${provider.url}/v1`)
  if (litellm !== null)
    routers.set('LiteLLM proxy', {
      url: `${stack.use(litellm).url}/v1/chat/completions`,
      headers: { authorization: `Bearer ${LITELLM_KEY}` },
    })
  return routers
}

export async function startPortkey(): Promise<PeerProcess | null> {
  const file = findPeer('BENCH_PORTKEY')
  if (file === null) return null
  const toArguments = (port: number) => [file, `--port=${port}`, '--headless']
  return startPeer({ name: 'Portkey', command: process.execPath, toArguments, probe: '/' })
}

export async function startLitellm(providerUrl: string): Promise<PeerProcess | null> {
  const command = findPeer('BENCH_LITELLM')
  if (command === null) return null
  const parameters = { model: 'openai/bench', api_base: providerUrl, api_key: 'bench' }
  // JSON is YAML.
  const config = JSON.stringify({ model_list: [{ model_name: 'bench', litellm_params: parameters }] })
  const toArguments = (port: number, folder: string) => {
    const file = join(folder, 'config.yaml')
    writeFileSync(file, config)
    return ['--config', file, '--host', '127.0.0.1', '--port', String(port)]
  }
  const environment = { LITELLM_MASTER_KEY: LITELLM_KEY }
  return startPeer({ name: 'LiteLLM', command, toArguments, environment, probe: '/health/liveliness' })
}

function toSpread(values: readonly number[]): readonly [number, number, number] {
  const sorted = values.toSorted((a, b) => a - b)
  return [sorted[Math.floor(sorted.length / 2)] ?? Number.NaN, sorted[0] ?? Number.NaN, sorted.at(-1) ?? Number.NaN]
}
