/**
 * Calls over three providers that fail in every way there is, through other gateways and through this service:
 *
 *   node bench/faults.ts [CALLS] [SEED]
 *
 * The gateways are those that bench/peers/found-peers.ts names. Each has the same three providers with the same faults in the same order, with their
 * own retries and fallbacks as their documents set them up, and gets every call once; ours is the storm of test/crash/fallback, whose clients send a
 * failure again with its key as the official SDKs do. Counted at the providers: what was made, what was made twice, and what was
 * made for a caller who got an answer without it; and, where there is a ledger, what was charged for nothing.
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { faultsOf, storm } from '../test/crash/fallback/storm.ts'
import { PAINTERS, type Painter, startPainter } from '../test/support/providers/painters.ts'
import { toTable } from './kit/figure.ts'
import { findPeer } from './peers/found-peers.ts'
import { type PeerProcess, startPeer } from './peers/peer-process.ts'

interface Gateway {
  readonly peer: PeerProcess
  readonly headers: Readonly<Record<string, string>>
  readonly model: string
}

interface Row {
  readonly gateway: string
  readonly answered: number
  readonly generations: number
  /** Calls that were made twice or more often. */
  readonly doubled: number
  /** Calls that were made, and whose callers got no result. */
  readonly lost: number
  /** null: it charges nobody. */
  readonly chargedForNothing: number | null
}

const CALLERS = 16
const PROVIDER_MS = 4000
const CALLER_MS = 60_000
const RETRIES = 2

const [calls = 500, seed = 1] = process.argv.slice(2, 4).map(Number)
const SCENES = [
  ['a third of all calls meet a fault', false],
  ['one provider is away, the others are healthy', true],
] as const
for (const [scene, isOneDown] of SCENES) {
  const rows: Row[] = []
  for (const open of [openLitellm, openPortkey]) {
    const row = await measure(open, isOneDown)
    if (row !== null) rows.push(row)
  }
  rows.push(await measureOurs(isOneDown))
  console.log(`\n${calls} calls, seed ${seed}: ${scene}\n`)
  console.log(
    toTable(rows.map(toCells), [
      '',
      'with a result',
      'generations',
      'made twice or more',
      'made, no result',
      'charged for nothing',
    ]),
  )
}

function toCells({ gateway, answered, generations, doubled, lost, chargedForNothing }: Row): string[] {
  const counts = [answered, generations, doubled, lost].map(String)
  return [gateway, ...counts, chargedForNothing === null ? 'no ledger' : String(chargedForNothing)]
}

/** Its assertions are those of the test: no call made twice, none charged without a result, the ledger exact. */
async function measureOurs(isOneDown: boolean): Promise<Row> {
  const { first, generations } = await storm({ store: 'sqlite', calls, kills: 0, seed, isOneDown, isSteady: true })
  return {
    gateway: 'Atelier',
    answered: first,
    generations,
    doubled: 0,
    lost: generations - first,
    chargedForNothing: 0,
  }
}

async function measure(
  open: (painters: readonly Painter[]) => Promise<Gateway | null>,
  isOneDown: boolean,
): Promise<Row | null> {
  await using stack = new AsyncDisposableStack()
  const painters = await Promise.all(PAINTERS.map((name) => startPainter(name, faultsOf({ seed, isOneDown }, name))))
  for (const painter of painters) stack.use(painter)
  if (isOneDown) await painters[0]?.goAway()
  const gateway = await open(painters)
  if (gateway === null) return null
  stack.use(gateway.peer)
  const results = new Map<string, boolean>()
  let next = 0
  const callAll = async () => {
    for (let index = next++; index < calls; index = next++) {
      const prompt = `call ${index}`
      results.set(prompt, await call(gateway, prompt))
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, callAll))
  // Counted when all have ended: what a gateway gave up on may have been made since.
  const made = [...results].map(([prompt, hasResult]) => ({
    hasResult,
    times: painters.reduce((sum, painter) => sum + (painter.made.get(prompt) ?? 0), 0),
  }))
  return {
    gateway: gateway.peer.name,
    answered: made.filter(({ hasResult }) => hasResult).length,
    generations: made.reduce((sum, { times }) => sum + times, 0),
    doubled: made.filter(({ times }) => times > 1).length,
    lost: made.filter(({ times, hasResult }) => times > 0 && !hasResult).length,
    chargedForNothing: null,
  }
}

async function call({ peer, headers, model }: Gateway, prompt: string): Promise<boolean> {
  try {
    const answer = await fetch(`${peer.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }] }),
      signal: AbortSignal.timeout(CALLER_MS),
    })
    const { choices } = (await answer.json()) as { choices?: { message?: { content?: string } }[] }
    return answer.status === 200 && choices?.[0]?.message?.content === Buffer.from(prompt).toString('base64')
  } catch {
    return false
  }
}

async function openLitellm(painters: readonly Painter[]): Promise<Gateway | null> {
  const command = findPeer('BENCH_LITELLM')
  if (command === null) return null
  const key = `sk-${randomBytes(24).toString('hex')}`
  const models = PAINTERS.map((name, index) => ({
    model_name: name,
    litellm_params: { model: `openai/${name}`, api_base: `${painters[index]?.url}/v1`, api_key: 'bench' },
  }))
  const fallbacks = [{ north: ['south', 'west'] }]
  const router = { num_retries: RETRIES, timeout: PROVIDER_MS / 1000, fallbacks }
  // JSON is YAML.
  const config = JSON.stringify({ model_list: models, router_settings: router })
  const toArguments = (port: number, folder: string) => {
    const file = path.join(folder, 'config.yaml')
    writeFileSync(file, config)
    return ['--config', file, '--host', '127.0.0.1', '--port', String(port)]
  }
  const peer = await startPeer({
    ...{ name: 'LiteLLM', command, toArguments, probe: '/health/liveliness' },
    environment: { LITELLM_MASTER_KEY: key },
  })
  return { peer, headers: { authorization: `Bearer ${key}` }, model: 'north' }
}

async function openPortkey(painters: readonly Painter[]): Promise<Gateway | null> {
  const file = findPeer('BENCH_PORTKEY')
  if (file === null) return null
  const toArguments = (port: number) => [file, `--port=${port}`, '--headless']
  const peer = await startPeer({ name: 'Portkey', command: process.execPath, toArguments, probe: '/' })
  const targets = painters.map(({ url }) => ({
    ...{ provider: 'openai', api_key: 'bench', custom_host: `${url}/v1` },
    ...{ retry: { attempts: RETRIES }, request_timeout: PROVIDER_MS },
  }))
  const config = JSON.stringify({ strategy: { mode: 'fallback' }, targets })
  return { peer, headers: { 'x-portkey-config': config }, model: 'painter' }
}
