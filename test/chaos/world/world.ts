/** Everything that a trial consists of but its clients: Postgres with a standby, nodes, engines, a provider, and the links between them. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { addPaidAccountTo } from '../../support/app/paid-account.ts'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'
import { toServerUrl } from '../../support/postgres/postgres-server.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../support/postgres/replicated-postgres.ts'
import { createDatabaseOn } from '../../support/postgres/test-database.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type BusKind, type ChaosBus, openBus } from './bus.ts'
import { EngineServer } from './engine-server.ts'
import { type ChaosProvider, openChaosProvider } from './provider.ts'
import { type JoinPlace, ServiceNode } from './service-node.ts'
import { writeSettings } from './settings-files.ts'
import { type BytesPlace, type ChaosStorage, openStorage } from './storage.ts'

export interface WorldShape {
  /** Nodes that clients talk to. */
  readonly apis: number
  /** Nodes that drive engines. None: the others run the jobs with the built-in engine. */
  readonly workers: number
  /** How many of the workers reach neither Postgres nor the storage, and join over HTTP. */
  readonly joined: number
  readonly engines: number
  readonly bytes: BytesPlace
  readonly bus: BusKind
}

export interface ChaosAccount {
  readonly id: string
  readonly key: string
  readonly grantedMicros: number
}

export interface World extends AsyncDisposable {
  readonly shape: WorldShape
  readonly folder: string
  readonly apis: readonly ServiceNode[]
  readonly workers: readonly ServiceNode[]
  readonly engines: readonly EngineServer[]
  readonly postgres: ReplicatedPostgres
  readonly provider: ChaosProvider
  readonly providerLink: FaultProxy
  readonly accounts: readonly ChaosAccount[]
  /** Of each account. */
  readonly limits: typeof LIMITS
  readonly deployments: readonly string[]
  readonly storage: ChaosStorage
  readonly bus: ChaosBus
  /** Of the database of the service on the server that takes writes now. */
  databaseUrl(): string
  /** Ends all nodes as an operator would. */
  stopNodes(): Promise<void>
  /** All nodes lead to the server that takes writes now, and lose the connections that they have. */
  followPostgres(): void
}

const ACCOUNTS = 4
const GRANTED_MICROS = 5_000_000_000
const LIMITS = { concurrentJobs: 6, queuedJobs: 100_000, routerConcurrency: 40, streams: 1000 }
const DEPLOYMENTS = ['alpha', 'beta']
const ENGINES_PER_WORKER = 2
// Ended runs and removed uploads leave bytes behind, which the sweep must find while the trial still lasts; longer than a lease and the
// time after it, in which a worker may still be about to write the record of what it stored.
const BLOB_GRACE = '2m'
// 32 bytes.
const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')
const ADMIN_TOKEN = 'the-administrator-of-a-trial'

export async function openWorld(shape: WorldShape, folder: string): Promise<World> {
  await using opening = new AsyncDisposableStack()
  // Each process that is started ends with this one, whatever ends it.
  process.setMaxListeners(100)
  const logs = join(folder, 'logs')
  await mkdir(logs, { recursive: true })
  const postgres = opening.use(await startReplicatedPostgres({ shared_buffers: '64MB' }))
  const database = await createDatabaseOn(postgres.primary.url)
  const databaseName = new URL(database.url).pathname.slice(1)
  const databaseUrl = () => toServerUrl(postgres.primary.port, databaseName)
  const accounts = await addAccounts(databaseUrl())
  const storage = opening.use(await openStorage(shape.bytes, folder))
  const bus = opening.use(await openBus(shape.bus))
  const provider = opening.use(await openChaosProvider())
  const providerLink = opening.use(await openFaultProxy({ target: provider.port }))
  const { flags: settings, providers } = await writeSettings(folder, providerLink.port)
  const env = {
    ATELIER_SECRET_KEY: SECRET_KEY,
    ATELIER_ADMIN_TOKEN: ADMIN_TOKEN,
    ATELIER_PROVIDERS: providers,
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
  }
  const engines: EngineServer[] = []
  for (let index = 1; index <= shape.engines; index += 1)
    engines.push(opening.use(await EngineServer.open(`engine-${index}`, join(logs, `engine-${index}.log`))))
  await Promise.all(engines.map((engine) => engine.start()))

  const common = ['--log-level', 'info']
  const parts = { folder: logs, databasePort: postgres.primary.port, databaseName, storage, bus }
  const openNode = async (name: string, flags: readonly string[], joins?: JoinPlace) => {
    const ofService = ['--kind', 'cloud', '--blob-grace', BLOB_GRACE, '--max-queue', '1000000', ...settings]
    const options =
      joins === undefined
        ? { flags: [...common, ...ofService, ...flags], env }
        : { flags: [...common, ...flags], env: {}, joins }
    return opening.use(await ServiceNode.open({ ...parts, name, ...options }))
  }
  const apis: ServiceNode[] = []
  for (let index = 1; index <= shape.apis; index += 1)
    apis.push(await openNode(`api-${index}`, shape.workers === 0 ? ['--workers', '2'] : ['--role', 'api']))
  await apis[0]?.start()
  await Promise.all(apis.slice(1).map((node) => node.start()))
  const urls = apis.map(({ front }) => `http://127.0.0.1:${front.port}`)
  const workers: ServiceNode[] = []
  for (let index = 0; index < shape.workers; index += 1) {
    const given = [
      '--comfyui',
      enginesOf(index, shape, engines)
        .map(({ url }) => url)
        .join(','),
    ]
    const name = `worker-${index + 1}`
    const isJoined = index >= shape.workers - shape.joined
    if (isJoined)
      workers.push(await openNode(name, given, { urls, key: await createWorkerKey(urls[0] as string, name) }))
    else workers.push(await openNode(name, ['--role', 'worker', ...given]))
  }
  await Promise.all(workers.map((node) => node.start()))
  const nodes = [...apis, ...workers]
  const deployments = shape.workers === 0 ? [] : DEPLOYMENTS
  for (const id of deployments) await createDeployment(urls[0] as string, id)
  const opened = opening.move()
  return {
    shape,
    folder,
    apis,
    workers,
    engines,
    postgres,
    provider,
    providerLink,
    accounts,
    limits: LIMITS,
    deployments,
    storage,
    bus,
    databaseUrl,
    async stopNodes() {
      await Promise.all(nodes.map((node) => node.terminate()))
    },
    followPostgres() {
      for (const { database } of nodes) {
        database.aim(postgres.primary.port)
        database.drop()
      }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Each engine is known to two workers, so that another one can drive it when the first is gone. */
function enginesOf(worker: number, { workers }: WorldShape, engines: readonly EngineServer[]): EngineServer[] {
  return engines.filter((_, engine) =>
    Array.from({ length: ENGINES_PER_WORKER }, (_, turn) => (engine + turn) % workers).includes(worker),
  )
}

async function addAccounts(databaseUrl: string): Promise<ChaosAccount[]> {
  await using store = await openPostgresStore({ url: databaseUrl })
  const made: ChaosAccount[] = []
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const id = `account-${index}`
    const { key } = await addPaidAccountTo(store, { id, micros: GRANTED_MICROS, overrides: LIMITS })
    made.push({ id, key, grantedMicros: GRANTED_MICROS })
  }
  return made
}

/** Worker keys are for one machine each. */
async function createWorkerKey(url: string, name: string): Promise<string> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ name })
  const made = await fetch(`${url}/admin/v1/workers/keys`, { method: 'POST', headers, body })
  if (made.status !== 201) throw new Error(`a worker key was refused: ${await made.text()}`)
  return ((await made.json()) as { text: string }).text
}

async function createDeployment(url: string, id: string): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }
  const ask = (path: string, init: RequestInit) => fetch(`${url}/admin/v1${path}`, { ...init, headers })
  const made = await ask('/deployments', { method: 'POST', body: JSON.stringify({ id, workers: 4 }) })
  if (made.status !== 201) throw new Error(`the deployment ${id} was refused: ${await made.text()}`)
  await waitUntil(async () => {
    const { state } = (await (await ask(`/deployments/${id}`, {})).json()) as { state: string }
    return state === 'ready'
  })
}
