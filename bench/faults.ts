/**
 * Calls over three providers that fail in every way there is, through other gateways and through this service:
 *
 *   node bench/faults.ts [CALLS] [SEED]
 *
 * The gateways are those that bench/peers/found-peers.ts names. Each gets every call once, with their own retries and fallbacks as
 * their documents set them up; ours is the storm of test/crash/fallback with the same seed. Counted at the providers: what was made twice, and
 * what was made for a caller who got an answer without it.
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { faultsOf, storm } from '../test/crash/fallback/storm.ts'
import { PAINTERS, type Painter, startPainter } from '../test/support/providers/painters.ts'
import { findPeer } from './peers/found-peers.ts'
import { type PeerProcess, startPeer } from './peers/peer-process.ts'

interface Gateway {
  readonly peer: PeerProcess
  readonly headers: Readonly<Record<string, string>>
  readonly model: string
}

const CALLERS = 16
const PROVIDER_MS = 4000
const CALLER_MS = 60_000
const RETRIES = 2

const [calls = 500, seed = 1] = process.argv.slice(2, 4).map(Number)
for (const isOneDown of [false, true]) {
  for (const open of [openLitellm, openPortkey]) await measure(open, isOneDown)
  await storm({ store: 'sqlite', calls, kills: 0, seed, isOneDown, report: (line) => console.log(`Atelier: ${line}`) })
}

async function measure(open: (painters: readonly Painter[]) => Promise<Gateway | null>, isOneDown: boolean) {
  await using stack = new AsyncDisposableStack()
  const painters = await Promise.all(PAINTERS.map((name) => startPainter(name, faultsOf({ seed, isOneDown }, name))))
  for (const painter of painters) stack.use(painter)
  if (isOneDown) await painters[0]?.goAway()
  const gateway = await open(painters)
  if (gateway === null) return
  stack.use(gateway.peer)
  const counts = { answered: 0, twice: 0, unanswered: 0 }
  let next = 0
  const callAll = async () => {
    for (let index = next++; index < calls; index = next++) {
      const prompt = `call ${index}`
      const hasResult = await call(gateway, prompt)
      const made = painters.reduce((sum, painter) => sum + (painter.made.get(prompt) ?? 0), 0)
      if (hasResult) counts.answered++
      if (made > 1) counts.twice++
      if (made > 0 && !hasResult) counts.unanswered++
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, callAll))
  const { answered, twice, unanswered } = counts
  const where = isOneDown ? 'one provider away' : 'every fault'
  console.log(
    `${gateway.peer.name}, ${where}, ${calls} calls: ${answered} with a result, ${twice} made twice or more, ${unanswered} made without one`,
  )
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
