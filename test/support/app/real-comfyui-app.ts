/** The real command over a real ComfyUI that it starts itself, with fake providers behind its partner nodes and an account that pays. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Answer, type CallOptions, call } from '../clients/call.ts'
import { prepareRealComfyui } from '../engines/real-comfyui.ts'
import { findFreePort } from '../network/free-port.ts'
import { type FakeCard, type FakeProvider, startFakeProvider } from '../providers/fake-providers/fake-card.ts'
import { waitUntil } from '../wait-until.ts'
import { addPaidAccount } from './paid-account.ts'
import { type SpawnedServer, spawnServer } from './spawn-server.ts'

export interface RealComfyuiApp extends AsyncDisposable {
  readonly key: string
  fakeOf(card: FakeCard): FakeProvider
  url(): string
  ask(path: string, options?: CallOptions): Promise<Answer>
  /** The id of the job. `key` is what its partner nodes show; null: nothing. */
  submit(workflow: object, key?: string | null): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  untilEnded(jobId: string): Promise<any>
  /** The job's calls of models, by name. */
  callsOf(jobId: string): Promise<{ readonly model: string; readonly status: string; readonly cost_usd: string }[]>
  /** Without warning; resolves when the service serves again, with a new ComfyUI. */
  killAndStart(): Promise<void>
}

interface RealAppOptions {
  /** The address that the engine is given for its partner nodes; left out: that of the service. */
  readonly apiBaseOf?: (service: string) => Promise<string>
}

const TERMINAL = ['succeeded', 'failed', 'canceled', 'expired']

export async function startRealComfyuiApp(
  cards: readonly FakeCard[],
  { apiBaseOf }: RealAppOptions = {},
): Promise<RealComfyuiApp> {
  await using opening = new AsyncDisposableStack()
  const fakes = new Map<FakeCard, FakeProvider>()
  for (const card of cards) fakes.set(card, opening.use(await startFakeProvider(card, { isReadable: true })))
  const comfyui = opening.use(await prepareRealComfyui())
  const dataDir = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  opening.defer(() => rm(dataDir, { recursive: true, force: true }))
  const { key } = await addPaidAccount(dataDir, { micros: 100_000_000, overrides: { routerConcurrency: 100 } })
  const providers = path.join(dataDir, 'providers.json')
  await writeFile(providers, JSON.stringify(toSettings(fakes)))
  // Its engines must know it beforehand.
  const port = await findFreePort()
  const base = await apiBaseOf?.(`http://127.0.0.1:${port}`)
  const command = base === undefined ? comfyui.command : `${comfyui.command} --comfy-api-base ${base}`
  const flags = ['--port', String(port), '--data-dir', dataDir, '--kind', 'cloud', '--engine-wait', '110s']
  const start = () =>
    spawnServer([...flags, '--comfyui-launch', command], {
      ATELIER_PROVIDERS: providers,
      // Jobs keep their credentials over a restart.
      ATELIER_SECRET_KEY: '11'.repeat(32),
      HOME: dataDir,
    })
  let server: SpawnedServer = await start()
  opening.defer(() => server[Symbol.asyncDispose]())
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const ask: RealComfyuiApp['ask'] = (where, options) => call(server.url, where, { headers, ...options })
  const opened = opening.move()
  return {
    key,
    fakeOf: (card) => fakes.get(card) ?? fail(card),
    url: () => server.url,
    ask,
    async submit(workflow, nodeKey = key) {
      const extra_data = nodeKey === null ? {} : { api_key_comfy_org: nodeKey }
      const answer = await ask('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow, extra_data }) })
      if (answer.status !== 201) throw new Error(`the job was refused: ${answer.text}`)
      return answer.json.id
    },
    async untilEnded(jobId) {
      const look = async () => (await ask(`/api/v2/jobs/${jobId}`)).json
      return waitUntil(async () => {
        const job = await look()
        return TERMINAL.includes(job.status) ? job : null
      })
    },
    async callsOf(jobId) {
      const { json } = await ask('/console/v1/calls?limit=100')
      const own = json.calls.filter(({ job_id }: { readonly job_id: string }) => job_id === jobId)
      return own.map(({ model, status, cost_usd }: Record<string, string>) => ({ model, status, cost_usd }))
    },
    async killAndStart() {
      await server.killNow()
      server = await start()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function toSettings(fakes: ReadonlyMap<FakeCard, FakeProvider>): object {
  const each = [...fakes].map(([{ provider, key }, { baseUrl }]) => {
    const settings = provider === 'veo' ? { project: 'p', api: 'vertex' } : {}
    return [provider, { key, base_url: baseUrl, settings }]
  })
  return { '*': { allow_private_network: true }, ...Object.fromEntries(each) }
}

function fail({ provider }: FakeCard): never {
  throw new Error(`no fake for ${provider}`)
}
