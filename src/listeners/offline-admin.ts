/**
 * Serves the admin API for one command over a data folder that no service holds: on loopback, on a free port, with a token that
 * is made for this one use. So the command line changes everything through the same API, whether a service runs or not, and
 * every change has its audit line. Nothing else of the service is started; no job runs meanwhile.
 */
import { randomBytes } from 'node:crypto'
import { systemClock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { openSharedAccounts } from '../compose/open-accounts.ts'
import { openStore } from '../compose/storage/open-store.ts'
import type { AccountsConfig } from '../config/blocks/accounts-config.ts'
import type { LoadedConfig } from '../config/config.ts'
import { openDeployments } from '../domain/deployments/deployments.ts'
import { createPoolSignals } from '../domain/deployments/pool-signals.ts'
import { createWorkerKeys } from '../domain/workers/worker-keys.ts'
import { createAdminAnswerError } from '../surfaces/admin/admin-operation.ts'
import { createWorkerOperations } from '../surfaces/admin/index.ts'
import { createGate } from '../surfaces/kit/guards/gate.ts'
import { createStaticTokenGuard } from '../surfaces/kit/guards/operator-guard.ts'
import { openServer } from '../surfaces/server.ts'
import { createAdminSurface } from './open-admin.ts'

interface OfflineAdminOptions {
  /** Who is at the keyboard, for the audit log. */
  readonly actor: string
  readonly version: string
  readonly log: Log
}

type LoadedSettings = Pick<LoadedConfig, 'config' | 'secrets'>

interface OfflineAdmin extends AsyncDisposable {
  readonly url: string
  readonly token: string
}

const TOKEN_BYTES = 32
// Accounts can be created before the kind of the service is configured.
const NO_SETTINGS: AccountsConfig = { tiers: null, tiersFile: null, prices: null, jwt: null }

/** Throws StoreOpenError when a service holds the folder. A database server may be used beside running services. */
export async function openOfflineAdmin(
  { config, secrets }: LoadedSettings,
  options: OfflineAdminOptions,
): Promise<OfflineAdmin> {
  const { actor, version, log } = options
  const clock = systemClock
  await using opening = new AsyncDisposableStack()
  const store = opening.use(await openStore(config.store, { secrets, clock, log }))
  const shared = await openSharedAccounts(config.accounts ?? NO_SETTINGS, { store, clock, log })
  const deployments = await openDeployments({ store: store.deployments, clock })
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const admin = createAdminSurface(config, {
    ...{ store, shared, deployments, version, clock, log },
    guard: createStaticTokenGuard(token),
    needsCredentials: true,
    actorOf: () => actor,
    workersOf: null,
    own: null,
    poolSignals: createPoolSignals({
      store: store.deployments,
      deployments,
      findLive: async () => (await store.nodes.list()).filter(({ aliveUntil }) => aliveUntil > clock.now()),
      clock,
    }),
    openStreams: () => 0,
    heldBy: () => 0,
    // No service runs here, so none has been started without worker keys.
    operations: [createWorkerOperations({ workerKeys: createWorkerKeys(shared), takesWorkers: true })],
  })
  const host = '127.0.0.1'
  const gate = createGate({
    ...{ brands: config.http.brand, bindHost: host, hasCredentials: true, authenticate: shared.authenticate },
    ...{ allowedHosts: [], corsOrigins: [], publicUrl: null, mountPrefix: '', trustedProxies: [] },
  })
  const answerError = createAdminAnswerError(log)
  const server = opening.use(await openServer({ host, port: 0, gate, surfaces: [admin], answerError, drainMs: 0 }))
  const running = opening.move()
  return { url: server.url, token, [Symbol.asyncDispose]: () => running.disposeAsync() }
}
