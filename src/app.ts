/**
 * The composition root: turns a checked configuration into a running service. It opens the parts in the order of their
 * dependencies and returns one object that closes them in the reverse order. Tests can override single parts.
 */

import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createSealer, type Sealer } from '../lib/sealer.ts'
import { sleep } from '../lib/waiting/sleep.ts'
import { createTurns, type Turns } from '../lib/waiting/turns.ts'
import { type AssetActions, createAssetActions } from './compose/asset-actions.ts'
import { openPools, type RunningPools } from './compose/engines/open-deployments.ts'
import { type FleetOverrides, openEngines } from './compose/engines/open-engines.ts'
import { createJobActions, type JobActions } from './compose/job-actions.ts'
import { toBusGauges } from './compose/metrics/bus-gauges.ts'
import { type Metrics, openMetrics } from './compose/metrics/open-metrics.ts'
import { createMinorGc } from './compose/minor-gc.ts'
import { openSharedAccounts, type SharedAccounts } from './compose/open-accounts.ts'
import { openBus } from './compose/open-bus.ts'
import { openClock, toServiceClock } from './compose/open-clock.ts'
import { createDirectories } from './compose/open-directories.ts'
import { openServiceNode, type ServiceNodeParts } from './compose/open-service-node.ts'
import { mayJoin, openWorkerGateway, openWorkerKeys } from './compose/open-worker-gateway.ts'
import { createReadiness } from './compose/readiness.ts'
import { PARTS_OF } from './compose/roles.ts'
import type { ModelOverrides, ReloadOutcome } from './compose/router/open-models.ts'
import { openRouter } from './compose/router/open-router.ts'
import { countWorkers, isServed } from './compose/served-pools.ts'
import { openServiceFile } from './compose/service-file.ts'
import { bindBlobs } from './compose/storage/bind-blobs.ts'
import { type BlobOverrides, openBlobs } from './compose/storage/open-blobs.ts'
import { openSigningKeys } from './compose/storage/open-signing-keys.ts'
import { openStore, type StoreOverrides } from './compose/storage/open-store.ts'
import { createStoreChores } from './compose/storage/store-chores.ts'
import { createStoreProbe } from './compose/storage/store-probe.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import { LOCAL_ACCOUNT_ID } from './domain/accounts/account.ts'
import { createLocalAuthenticate } from './domain/accounts/caller.ts'
import { createContentSigner } from './domain/assets/signed-url.ts'
import { DEFAULT_POOL } from './domain/deployments/deployment.ts'
import { openDeployments } from './domain/deployments/deployments.ts'
import { createPoolSignals } from './domain/deployments/pool-signals.ts'
import type { Engine } from './domain/engine/engine-port.ts'
import type { Fleet } from './domain/engine/fleet/fleet.ts'
import type { NodeModels, RunModel } from './domain/engine/model-port.ts'
import type { Store } from './domain/store.ts'
import { openHealthOnly } from './open-health.ts'
import { type HttpOverrides, openHttp, toUploadLimit } from './open-http.ts'
import type { SurfaceGauge } from './surfaces/kit/surface.ts'
import { errorTypeOf } from './surfaces/router-v2/router-error-types.ts'

export interface AppOverrides extends FleetOverrides, HttpOverrides, BlobOverrides, StoreOverrides {
  readonly clock?: Clock
  /** For tests that observe how long work on the main thread is cut into slices. */
  readonly turns?: Turns
  /** For tests: a store that can be away. */
  readonly wrapStore?: (store: Store) => Store
  /** For tests: called in place of the garbage collector. */
  readonly collectMinor?: () => void
  /** For tests: other providers, and a store that can fail at a chosen step. */
  readonly models?: ModelOverrides
}

interface AppOptions {
  readonly log: Log
  readonly version: string
  readonly overrides?: AppOverrides
}

export interface App extends AsyncDisposable {
  readonly url: string
  /** Accepts no new work, lets running jobs finish within the configured time, returns the rest to the queue and ends streams. */
  drain(): Promise<void>
  /** Resolves with the reason when the service can no longer do its work. */
  readonly failed: Promise<Error>
  readonly store: Store
  readonly fleet: Fleet
  /** The engine in this process; null when the configuration names only other servers. */
  readonly engine: Engine | null
  /** Reads the model catalogue again. A catalogue with a fault is not used, and the present one stays. */
  reloadModels(): Promise<ReloadOutcome>
}

export async function startApp(config: Config, secrets: Secrets, options: AppOptions): Promise<App> {
  const { log, version, overrides = {} } = options
  const serviceClock =
    overrides.clock === undefined
      ? openClock({ isFollowed: config.store.kind === 'postgres', log })
      : toServiceClock(overrides.clock)
  const { clock } = serviceClock
  await using opening = new AsyncDisposableStack()
  const keptStore = opening.use(
    await openStore(config.store, { retentionMs: config.jobs.retentionMs, secrets, overrides, clock, log }),
  )
  const store = overrides.wrapStore?.(keptStore) ?? keptStore
  await serviceClock.begin(store)
  // Commands on this machine find the one service of a data folder by it.
  const serviceFile = store.isExclusive ? opening.use(await openServiceFile(config.dataDirectory)) : null
  const onTransferred = createMinorGc({ isOn: config.http.transferGc, collect: overrides.collectMinor })
  let poolWorkers = (): Readonly<Record<string, number>> => ({})
  let address: string | null = null
  const { role } = config
  const opens = PARTS_OF[role]
  const takesWorkers = await mayJoin(config.fleet, store)
  const node = opening.use(
    await openServiceNode({
      ...{ takesWorkers, store, version, role, clock, log },
      workers: () => poolWorkers(),
      address: () => address,
    }),
  )
  serviceClock.follow(store, node.heartbeat)
  const opened = opening.use(
    await openBlobs(config.blobs, config.assets, {
      store,
      secrets,
      users: store.isExclusive ? null : await findUsers(node),
      overrides,
      onTransferred,
      clock,
      log,
    }),
  )
  await bindBlobs(store, opened.place)
  // The engine runs models for nodes, and models run workflows on the engine, so one of the two is connected later.
  const nodeModels = Promise.withResolvers<NodeModels>()
  const runModel: RunModel = async (request, signals) => (await nodeModels.promise).run(request, signals)
  const metrics = openMetrics({ version, role, errorTypeOf })
  const bus = opening.use(
    await openBus(config.bus, { storeConfig: config.store, secrets, store, heartbeat: node.heartbeat, clock, log }),
  )
  address = bus.address
  const directories = opening.use(createDirectories({ store, bus, log }))
  const shared =
    config.accounts === null ? null : await openSharedAccounts(config.accounts, { store, directories, clock, log })
  const workerKeys = await openWorkerKeys({ store, shared, directories, clock })
  const engines = await openEngines(config, {
    ...{ clock, log, store, node, overrides, runModel, takesWorkers },
    workerKeys: workerKeys.keys,
  })
  const { resident } = engines
  const { fleet, directory, follow, toCommand, chores: engineChores } = opening.use(engines.opened)
  const authenticate =
    overrides.authenticate ?? shared?.authenticate ?? createLocalAuthenticate(secrets.token?.reveal() ?? null)
  const identify = overrides.authenticate ?? shared?.identify ?? authenticate
  const maxUploadBytes = toUploadLimit(config, shared)
  const storageLimitOf = (accountId: string) => shared?.limitsOf(accountId).storageBytes ?? null
  const sealer = openSealer(secrets)
  const assets = createAssetActions(config.assets, {
    ...{ store, opened, maxUploadBytes, storageLimitOf, sealer, clock, log },
  })
  const announce = () => directories.announce('deployments')
  const deployments =
    config.deployments === null ? null : await openDeployments({ store: store.deployments, clock, announce })
  directories.follow({
    ...shared?.lists,
    ...(workerKeys.ring !== null && { keys: workerKeys.ring }),
    ...(deployments !== null && { deployments }),
  })
  const { maxOvertakes } = config.fleet
  const { observer } = metrics
  const turns = overrides.turns ?? createTurns()
  const parts = {
    store,
    blobs: opened.blobs,
    bus,
    fleet,
    directory,
    assets,
    sealer,
    observer,
    turns,
    clock,
    log,
    maxOvertakes,
    heartbeat: node.heartbeat,
    leadership: node.leadership,
  }
  const jobs = createJobActions(config.jobs, {
    ...parts,
    rules: shared,
    mustTakeJobs: deployments?.mustTakeJobs,
    async refuseClosedPool(pool) {
      await deployments?.refresh()
      deployments?.mustTakeJobs(pool)
    },
    mustRunModels: async (wish) => (await nodeModels.promise).mustRun(wish),
    chores: [
      ...engineChores,
      ...(shared?.chores ?? []),
      ...opened.chores,
      ...workerKeys.chores,
      ...createStoreChores(store.upkeep),
    ],
  })
  if (shared !== null) opening.defer(() => flushKeyUses(shared, log))
  opening.defer(() => jobs.reader.stop())
  opening.use(jobs.watching)
  await prepareStore(config, { store, jobs, takesWorkers })
  opening.use(jobs.worker)
  opening.use(jobs.engineDrain)
  opening.use(jobs.housekeeping)
  const commandEngine = toCommand((engineId, will) => {
    if (will === 'draining') jobs.engineDrain.drain(engineId)
    else if (will === 'cordoned') fleet.cordon(engineId)
    else fleet.resume(engineId)
  })
  const poolSignals = createPoolSignals({
    store: store.deployments,
    deployments,
    findLive: node.heartbeat.findLive,
    clock,
  })
  const { drainTimeoutMs } = config.jobs
  const pools =
    config.deployments === null || deployments === null
      ? null
      : opening.use(
          openPools(config.deployments, {
            ...{ deployments, store, jobs, bus, drainTimeoutMs, poolSignals, node, clock, log },
            workersHere: (deployment) => (opens.engines ? countWorkers(config.jobs, deployment) : 0),
          }),
        )
  const runsCommonPool = opens.engines && config.jobs.workers > 0 && isServed(config.jobs, DEFAULT_POOL)
  poolWorkers = () => ({
    ...pools?.workers.counts(),
    [DEFAULT_POOL]: runsCommonPool && !jobs.worker.stats().isDraining ? config.jobs.workers : 0,
  })
  const keys = await openSigningKeys({
    configured: secrets.signingKeys,
    kept:
      store.isExclusive || sealer === null
        ? { in: 'folder', directory: config.dataDirectory }
        : { in: 'store', store, sealer },
  })
  const signer = createContentSigner(keys, clock)
  const router = opening.use(
    await openRouter(config.router, {
      secrets,
      directory: config.dataDirectory,
      nodeId: node.heartbeat.nodeId,
      bus,
      store,
      opened,
      assets,
      shared,
      leadership: node.leadership,
      engine: resident,
      authenticate,
      identify,
      brands: config.http.brand,
      baseUrl: `${config.http.publicUrl ?? ''}${config.http.mountPrefix}`,
      observer: metrics.callObserver,
      observeExchange: metrics.observeExchange,
      signer,
      overrides: overrides.models ?? {},
      clock,
      log,
    }),
  )
  nodeModels.resolve(router.nodeModels)
  const gateway =
    takesWorkers && opens.surfaces
      ? openWorkerGateway({
          ...{ store, jobs, assets, bus, directory, follow, runModel, turns, clock, log },
          keys: workerKeys.keys,
          signingKeys: keys,
          blobs: opened.blobs,
          heartbeat: node.heartbeat,
        })
      : null
  const readiness = createReadiness({
    storeAnswers: createStoreProbe(store, () => performance.now()),
    isClockSane: serviceClock.isSane,
    hasRoom: opened.hasRoom,
    parts: { blobs: opened.answers, bus: async () => bus.health()?.isHearing !== false },
  })
  const open = opens.surfaces ? openHttp : openHealthOnly
  const http = opening.use(
    await open(config, {
      store,
      secrets,
      bus,
      directory,
      commandEngine,
      overrides,
      authenticate,
      shared,
      deployments,
      pools,
      version,
      jobs,
      assets,
      router,
      blobs: opened.blobs,
      workerKeys: workerKeys.keys,
      gateway,
      readiness,
      own: node.own,
      poolSignals,
      signer,
      metrics,
      turns,
      onTransferred,
      clock,
      log,
    }),
  )
  const { openStreams } = http
  const gauges = [...http.gauges, ...opened.gauges, ...toBusGauges(bus)]
  watchGauges(metrics, {
    ...{ node, jobs, fleet, pools, store, openStreams, gauges },
    service: opens.surfaces
      ? { countJobs: () => store.jobs.countByStatus(), poolSignals: () => poolSignals.list() }
      : null,
  })
  const sweeping = new AbortController()
  // Beside other processes, bytes without a record may be bytes whose record is on its way.
  const swept = store.isExclusive ? sweepLeftOvers(assets, sweeping.signal, log) : null
  opening.defer(async () => {
    sweeping.abort()
    await swept
  })
  node.listensAt(http.url)
  await node.heartbeat.beat()
  node.heartbeat.start()
  jobs.housekeeping.start()
  router.actions.queue.start()
  router.models.watchFolders()
  if (runsCommonPool) jobs.worker.start()
  pools?.start()
  await serviceFile?.announce(http.url, config.http.mountPrefix)
  const running = opening.move()

  return {
    url: http.url,
    store,
    fleet,
    engine: resident,
    reloadModels: () => router.reload(),
    failed: store.failed,
    async drain() {
      readiness.drain()
      node.drain()
      await sleep(config.jobs.drainDelayMs)
      const deadline = new Date(clock.now().getTime() + drainTimeoutMs)
      // Where nothing runs that a client could be waiting for, streams are told at once to go elsewhere.
      const closed = opens.engines ? null : http.close()
      await Promise.all([jobs.worker.drain({ deadline }), pools?.drain({ deadline }), router.drain(drainTimeoutMs)])
      await (closed ?? http.close())
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** The processes of the service, as users of its folder of blobs. */
async function findUsers({ heartbeat }: ServiceNodeParts) {
  return { own: heartbeat.nodeId, live: new Set((await heartbeat.findLive()).map(({ id }) => id)) }
}

interface PreparedParts {
  readonly store: Store
  readonly jobs: JobActions
  readonly takesWorkers: boolean
}

/** Creates the implicit account of the local kind, and recovers the jobs that an earlier process left unfinished. */
async function prepareStore(config: Config, { store, jobs, takesWorkers }: PreparedParts): Promise<void> {
  // How much may wait is for those to say that take jobs, not for a worker.
  if (PARTS_OF[config.role].surfaces) {
    await store.accounts.put({
      id: LOCAL_ACCOUNT_ID,
      // The number of workers bounds what runs at a time, so the only account needs no limit of its own.
      maxRunning: 1_000_000,
      maxQueued: config.jobs.maxQueued,
    })
  }
  // Nobody else has the store, so whoever held a lease is gone. Beside other processes and joined workers, leases lapse by themselves.
  if (store.isExclusive && !takesWorkers) await jobs.recover({ releaseAll: true })
  await jobs.lanes.start()
}

function openSealer({ secretKey, formerSecretKeys }: Secrets): Sealer | null {
  if (secretKey === null) return null
  return createSealer(
    secretKey.reveal(),
    formerSecretKeys.map((key) => key.reveal()),
  )
}

interface GaugeParts {
  readonly service: Parameters<Metrics['watch']>[0]['service']
  readonly store: Pick<Store, 'stats' | 'upkeep'>
  readonly node: ServiceNodeParts
  readonly jobs: JobActions
  readonly fleet: Fleet
  readonly pools: RunningPools | null
  readonly openStreams: () => number
  readonly gauges: readonly SurfaceGauge[]
}

function watchGauges(metrics: Metrics, parts: GaugeParts): void {
  metrics.watch({
    gauges: parts.gauges,
    nodeId: parts.node.heartbeat.nodeId,
    isLeading: () => parts.node.leadership.isHeld(),
    service: parts.service,
    runningHere: () => parts.jobs.worker.stats().running + (parts.pools?.workers.running() ?? 0),
    openStreams: parts.openStreams,
    engines: () => parts.fleet.status(),
    groupCommit: () => parts.store.stats().write,
    storeHealth: parts.store.upkeep?.health ?? null,
  })
}

/** When keys were last used is only told, so a store that is away at the end does not make the end a failure. */
async function flushKeyUses(shared: Pick<SharedAccounts, 'flush'>, log: Log): Promise<void> {
  try {
    await shared.flush()
  } catch (error) {
    log.warn({ err: error }, 'when keys were last used could not be stored')
  }
}

/** Removes bytes that a crash left without a record. Runs once per start, in the background. */
async function sweepLeftOvers(
  assets: Pick<AssetActions, 'sweepOrphans'>,
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  try {
    const removed = await assets.sweepOrphans({ signal })
    if (removed > 0) log.info({ removed }, 'removed bytes that a crash had left behind')
  } catch (error) {
    log.warn({ err: error }, 'left-over bytes could not be swept; the next start tries again')
  }
}
