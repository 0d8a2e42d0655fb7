/** Several processes of the service on one Postgres and one folder of bytes, of which any may be killed and started again. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { addPaidAccountTo } from '../../support/app/paid-account.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'

export interface ClusterAccount {
  readonly id: string
  readonly key: string
  readonly grantedMicros: number
}

export interface Cluster extends AsyncDisposable {
  readonly databaseUrl: string
  readonly accounts: readonly ClusterAccount[]
  /** Where the nodes that run now listen. */
  urls(): readonly string[]
  /** Kills a node without warning; it is gone from `urls` until `start`. */
  kill(index: number): Promise<void>
  start(index: number): Promise<void>
  /** Ends all nodes as an operator would. */
  stop(): Promise<void>
  outputs(): string
}

interface ClusterOptions {
  readonly databaseUrl: string
  readonly nodes: number
  readonly providerUrl: string
  /** What each node runs, for upgrades: the program of another checkout. */
  readonly bins?: readonly string[]
}

export const CALL_MICROS = 40_000
const GRANTED_MICROS = 500_000_000
const ACCOUNTS = 4
// 32 bytes.
const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')

export async function openCluster({ databaseUrl, nodes, providerUrl, bins }: ClusterOptions): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-cluster-'))
  const { flags: settings, providers } = await writeSettings(folder, providerUrl)
  const accounts = await addAccounts(databaseUrl)
  const running: (SpawnedServer | null)[] = Array.from({ length: nodes }, () => null)
  const said: string[] = []
  const env = {
    ATELIER_SECRET_KEY: SECRET_KEY,
    ATELIER_PROVIDERS: providers,
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
  }

  async function start(index: number): Promise<void> {
    const flags = [
      ...['--kind', 'cloud', '--database', databaseUrl, '--data-dir', join(folder, 'data'), '--workers', '2'],
      ...['--max-queue', '1000000', '--log-level', 'warn', ...settings],
    ]
    running[index] = await spawnServer(flags, env, bins === undefined ? {} : { bin: bins[index] })
  }

  async function stopOne(index: number, how: 'killNow' | 'terminate'): Promise<void> {
    const node = running[index]
    running[index] = null
    if (node === null) return
    await node[how]()
    said.push(node.output())
  }

  await start(0)
  await Promise.all(Array.from({ length: nodes - 1 }, (_, index) => start(index + 1)))
  return {
    databaseUrl,
    accounts,
    urls: () => running.flatMap((node) => (node === null ? [] : [node.url])),
    kill: (index) => stopOne(index, 'killNow'),
    start,
    async stop() {
      await Promise.all(running.map((_, index) => stopOne(index, 'terminate')))
    },
    outputs: () => said.join('\n').slice(-50_000),
    async [Symbol.asyncDispose]() {
      await Promise.all(running.map((_, index) => stopOne(index, 'killNow')))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A provider as data whose server is in the test, and prices for jobs. */
async function writeSettings(folder: string, providerUrl: string): Promise<{ flags: string[]; providers: string }> {
  const catalog = join(folder, 'models', 'crash')
  await mkdir(catalog, { recursive: true })
  const put = (path: string, content: object) => writeFile(join(folder, path), JSON.stringify(content))
  await put('models/crash/provider.json', {
    ...{ provider: 'crash', title: 'Crash', base_url: 'https://crash.test', api_hosts: [], headers: {}, settings: {} },
    ...{ auth: [{ headers: { authorization: '{key}' } }], concurrency: 64, outcomes: [], messages: ['error'] },
  })
  await put('models/crash/paint.json', {
    id: 'crash/paint',
    billing: { charges_on_policy_rejection: 'no' },
    input: {
      modalities: ['text'],
      schema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
      example: { prompt: 'a fox' },
    },
    output: { modalities: ['text'], media_type: 'application/json', schema: {} },
    returns: 'direct',
    deadline_seconds: 60,
    price: { parts: [{ unit: 'request', usd: '0.04' }] },
    adapter: {
      deduplicates: true,
      operations: [{ name: 'paint', path: '/paint', headers: { 'x-submit-key': '{submit_key}' }, returns: 'json' }],
      assets: ['generation'],
    },
  })
  await put('providers.json', { crash: { key: 'none', base_url: providerUrl }, '*': { allow_private_network: true } })
  await put('prices.json', { pools: { '*': { perSecondMicros: 1000, minimumMicros: 500, holdMicros: 2000 } } })
  const file = (name: string) => join(folder, name)
  return { flags: ['--catalogs', file('models'), '--prices', file('prices.json')], providers: file('providers.json') }
}

async function addAccounts(databaseUrl: string): Promise<ClusterAccount[]> {
  await using store = await openPostgresStore({ url: databaseUrl })
  const overrides = { concurrentJobs: 3, queuedJobs: 100_000, routerConcurrency: 20 }
  const made: ClusterAccount[] = []
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const id = `account-${index}`
    const { key } = await addPaidAccountTo(store, { id, micros: GRANTED_MICROS, overrides })
    made.push({ id, key, grantedMicros: GRANTED_MICROS })
  }
  return made
}
