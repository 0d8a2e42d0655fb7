/**
 * The composition root: from a checked configuration to a running service. It opens every part in the order in which they
 * need each other and gives back one thing that ends them all in the reverse order. Tests hand in overrides for single parts.
 */
import { createAdminSurface } from './admin-surface.ts'
import { type AssetActions, createAssetActions } from './compose/asset-actions.ts'
import { bindBlobs } from './compose/bind-blobs.ts'
import { readOpenFileLimit, toConnectionLimit } from './compose/connection-limit.ts'
import { createJobActions, type JobActions } from './compose/job-actions.ts'
import { openSharedAccounts, type SharedAccounts } from './compose/open-accounts.ts'
import { type Blobs, openBlobs } from './compose/open-blobs.ts'
import { openBus } from './compose/open-bus.ts'
import { openPools, type RunningPools } from './compose/open-deployments.ts'
import { type FleetOverrides, openFleet } from './compose/open-engines.ts'
import { type Metrics, openMetrics } from './compose/open-metrics.ts'
import type { ModelOverrides, ReloadOutcome } from './compose/open-models.ts'
import { openPictures } from './compose/open-pictures.ts'
import { openRouter, type Router } from './compose/open-router.ts'
import { openSigningKeys } from './compose/open-signing-keys.ts'
import { openStore, type Store } from './compose/open-store.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import { LOCAL_ACCOUNT_ID } from './domain/accounts/account.ts'
import { type Authenticate, createLocalAuthenticate } from './domain/accounts/caller.ts'
import type { PerAccount } from './domain/accounts/tiers.ts'
import { createUserFiles } from './domain/accounts/user-files.ts'
import { type ContentSigner, createContentSigner } from './domain/assets/signed-url.ts'
import { type Deployments, openDeployments } from './domain/deployments/deployments.ts'
import type { Engine } from './domain/engine/engine.ts'
import type { EngineEvent } from './domain/engine/engine-event.ts'
import type { Fleet } from './domain/engine/fleet.ts'
import type { RunModel } from './domain/engine/run-model.ts'
import type { EventBus } from './domain/events/event-bus.ts'
import { asChosen, withinAccount } from './domain/jobs/chosen-id.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { createSealer } from './lib/sealer.ts'
import { createEngineOperations } from './surfaces/admin/engine-operations.ts'
import { createContentSurface } from './surfaces/content/index.ts'
import { createDocs } from './surfaces/docs/index.ts'
import { createDirectLinks, createSignedLinks } from './surfaces/jobs-v2/content-links.ts'
import { createAnswerError } from './surfaces/jobs-v2/errors.ts'
import { createJobsV2 } from './surfaces/jobs-v2/index.ts'
import type { PoolOf } from './surfaces/jobs-v2/pool-of.ts'
import { loadSpec } from './surfaces/jobs-v2/spec.ts'
import {
  createDeploymentHosts,
  createRouteDeployment,
  type DeploymentHosts,
} from './surfaces/kit/deployment-address.ts'
import { createGate, type Gate } from './surfaces/kit/gate.ts'
import { createOperatorSurface } from './surfaces/kit/health.ts'
import { createStaticTokenGuard, type StaticTokenGuard } from './surfaces/kit/static-token.ts'
import type { Surface, SurfaceGauge } from './surfaces/kit/surface.ts'
import type { SurfaceParts } from './surfaces/kit/surface-parts.ts'
import { openTracing } from './surfaces/kit/tracing.ts'
import { openOptionalSurfaces } from './surfaces/optional-surfaces.ts'
import { createRouterV2 } from './surfaces/router-v2/index.ts'
import { loadRouterSpec } from './surfaces/router-v2/spec.ts'
import { openServer } from './surfaces/server.ts'

// Longer than any call, so that the answer of the last moment still finds its connection.
const HOLD_GRACE_MS = 60_000

export interface AppOverrides extends FleetOverrides {
  readonly clock?: Clock
  /** Who a credential belongs to. */
  readonly authenticate?: Authenticate
  /** Changes what optional surfaces are given. */
  readonly surfaceParts?: (parts: SurfaceParts) => SurfaceParts
  /** For tests: providers of their own, and a store that can fail at a chosen step. */
  readonly models?: ModelOverrides
}

export interface AppOptions {
  readonly log: Log
  readonly version: string
  readonly overrides?: AppOverrides
}

export interface App extends AsyncDisposable {
  readonly url: string
  /** Takes no new work, lets what runs finish within the configured time, gives the rest back to the queue, ends streams. */
  drain(): Promise<void>
  /** Resolves with the reason when the service can no longer do its work. */
  readonly failed: Promise<Error>
  readonly store: Store
  readonly fleet: Fleet
  /** The one in this process; null when only others were asked for. */
  readonly engine: Engine | null
  /** Reads the catalogue of models again: all of it or, when something is wrong with it, nothing. */
  reloadModels(): Promise<ReloadOutcome>
}

export async function startApp(config: Config, secrets: Secrets, options: AppOptions): Promise<App> {
  const { log, version, overrides = {} } = options
  const clock = overrides.clock ?? systemClock
  await using opening = new AsyncDisposableStack()
  const store = opening.use(await openStore(config.store, { clock, log }))
  const opened = await openBlobs(config.blobs, config.assets, log)
  await bindBlobs(store, config.blobs.directory)
  // The engine runs models for nodes, and models run workflows on the engine: one of the two has to be told later.
  const nodeModels = Promise.withResolvers<RunModel>()
  const runModel: RunModel = async (request, signals) => (await nodeModels.promise)(request, signals)
  const { fleet, resident } = await openFleet(config, { clock, log, store, overrides, runModel })
  opening.use(fleet)
  const metrics = openMetrics(version)
  const shared = config.accounts === null ? null : await openSharedAccounts(config.accounts, { store, clock, log })
  const authenticate =
    overrides.authenticate ?? shared?.authenticate ?? createLocalAuthenticate(secrets.token?.reveal() ?? null)
  const maxUploadBytes = toUploadLimit(config, shared)
  const assets = createAssetActions(config.assets, { store, opened, maxUploadBytes, clock, log })
  const sealer = secrets.secretKey === null ? null : createSealer(secrets.secretKey.reveal())
  const bus = openBus()
  const deployments = config.deployments === null ? null : await openDeployments({ store: store.deployments, clock })
  const { maxOvertakes } = config.fleet
  const { observer } = metrics
  const parts = { store, blobs: opened.blobs, bus, fleet, assets, sealer, observer, clock, log, maxOvertakes }
  const jobs = createJobActions(config.jobs, {
    ...parts,
    rules: shared,
    mustTakeJobs: deployments?.mustTakeJobs,
    chores: shared?.chores ?? [],
  })
  if (shared !== null) opening.defer(() => shared.flush())
  opening.defer(() => jobs.reader.stop())
  opening.use(jobs.watching)
  await prepareStore(config, store, jobs)
  opening.use(jobs.worker)
  opening.use(jobs.engineDrain)
  opening.use(jobs.housekeeping)
  const { drainTimeoutMs } = config.jobs
  const pools =
    config.deployments === null || deployments === null
      ? null
      : opening.use(openPools(config.deployments, { deployments, store, jobs, bus, drainTimeoutMs, clock, log }))
  const keys = await openSigningKeys({ configured: secrets.signingKeys, directory: config.store.directory })
  const signer = createContentSigner(keys, clock)
  const router = opening.use(
    await openRouter(config.router, {
      secrets,
      store,
      opened,
      assets,
      shared,
      engine: resident,
      authenticate,
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
  nodeModels.resolve(router.runForNode)
  const http = opening.use(
    await openHttp(config, {
      store,
      secrets,
      bus,
      fleet,
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
      signer,
      metrics,
      clock,
      log,
    }),
  )
  watchGauges(metrics, { store, jobs, fleet, pools, openStreams: http.openStreams, gauges: http.gauges })
  const sweeping = new AbortController()
  const swept = sweepLeftOvers(assets, sweeping.signal, log)
  opening.defer(async () => {
    sweeping.abort()
    await swept
  })
  jobs.housekeeping.start()
  router.actions.queue.start()
  router.models.watchFolders()
  if (config.jobs.workers > 0) jobs.worker.start()
  pools?.start()
  const running = opening.move()

  return {
    url: http.url,
    store,
    fleet,
    engine: resident,
    reloadModels: () => router.models.reload(),
    failed: store.failed,
    async drain() {
      const deadline = new Date(clock.now().getTime() + drainTimeoutMs)
      await Promise.all([jobs.worker.drain({ deadline }), pools?.drain({ deadline }), router.drain(drainTimeoutMs)])
      await http.close()
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** The one implicit account of the local kind, and the jobs that a process before us left in the middle. */
async function prepareStore(config: Config, store: Store, jobs: JobActions): Promise<void> {
  await store.accounts.put({
    id: LOCAL_ACCOUNT_ID,
    // What runs at a time is bounded by the workers; the account of a whole machine needs no bound of its own.
    maxRunning: 1_000_000,
    maxQueued: config.jobs.maxQueued,
  })
  // The lock on the data folder proves that whoever held these leases is gone.
  await jobs.recover({ releaseAll: true })
  await jobs.lanes.start()
}

interface GaugeParts {
  readonly store: Store
  readonly jobs: JobActions
  readonly fleet: Fleet
  readonly pools: RunningPools | null
  readonly openStreams: () => number
  readonly gauges: readonly SurfaceGauge[]
}

function watchGauges(metrics: Metrics, parts: GaugeParts): void {
  metrics.watch({
    gauges: parts.gauges,
    countJobs: () => parts.store.jobs.countByStatus(),
    runningHere: () => parts.jobs.worker.stats().running + (parts.pools?.workers.running() ?? 0),
    openStreams: parts.openStreams,
    engines: () => parts.fleet.status(),
    groupCommit: () => parts.store.stats().write,
  })
}

/** Once per start and beside the work: bytes that a crash left without any record. */
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

function toUploadLimit({ assets }: Config, shared: SharedAccounts | null): PerAccount {
  if (shared === null) return assets.maxUploadBytes
  return (accountId) => Math.min(assets.maxUploadBytes, shared.limitsOf(accountId).uploadBytes ?? assets.maxUploadBytes)
}

function toStreamLimit({ http }: Config, shared: SharedAccounts | null): PerAccount {
  if (shared === null) return http.maxStreams
  return (accountId) => Math.min(http.maxStreams, shared.limitsOf(accountId).streams)
}

interface AdminParts extends HttpParts {
  readonly guardAdmin: StaticTokenGuard
  readonly openStreams: (accountId?: string) => number
}

function openAdmin(config: Config, { guardAdmin, pools, ...parts }: AdminParts): Surface {
  return createAdminSurface(config, {
    ...parts,
    guard: guardAdmin,
    actorOf: (request) => `admin token from ${request.raw.socket.remoteAddress ?? 'nowhere'}`,
    workersOf: pools?.workers.count ?? null,
    operations: [createEngineOperations({ fleet: parts.fleet, drain: parts.jobs.engineDrain.drain })],
  })
}

function toDeploymentHosts(config: Config['deployments']): DeploymentHosts | null {
  if (config === null || config.domain === null) return null
  return createDeploymentHosts({ domain: config.domain, stagingLabel: config.stagingLabel })
}

function toPoolOf(deployments: Deployments): PoolOf {
  return ({ deploymentId }, accountId) =>
    deploymentId === null ? null : deployments.findFor(accountId, deploymentId).id
}

interface HttpParts {
  readonly store: Store
  readonly version: string
  readonly secrets: Secrets
  readonly authenticate: Authenticate
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly deployments: Deployments | null
  readonly pools: RunningPools | null
  readonly bus: EventBus<EngineEvent>
  readonly fleet: Fleet
  readonly overrides: AppOverrides
  readonly jobs: JobActions
  readonly assets: AssetActions
  readonly router: Router
  readonly blobs: Blobs['blobs']
  readonly signer: ContentSigner
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Log
}

async function openHttp(config: Config, parts: HttpParts) {
  const { secrets, authenticate, shared, deployments, jobs, assets, router, signer, metrics, clock, log } = parts
  const { http } = config
  const gate = createGate({
    brands: http.brand,
    bindHost: http.host,
    hasCredentials: shared !== null || secrets.token !== null,
    authenticate,
    isWelcome: parts.overrides.authenticate === undefined ? shared?.isWelcome : undefined,
    allowedHosts: http.allowedHosts,
    corsOrigins: http.corsOrigins,
    publicUrl: http.publicUrl,
    mountPrefix: http.mountPrefix,
    trustedProxies: http.trustedProxies,
    deploymentHosts: toDeploymentHosts(config.deployments),
  })
  const spec = loadSpec(http.brand)
  const answerError = createAnswerError(log)
  const contentLinks =
    config.kind === 'local'
      ? createDirectLinks(clock)
      : createSignedLinks({ sign: signer.sign, lifetimeMs: config.assets.urlLifetimeMs, clock })
  const jobsV2 = createJobsV2({
    gate,
    spec,
    answerError,
    clock,
    maxBodyBytes: http.maxBodyBytes,
    maxStreamsPerAccount: toStreamLimit(config, shared),
    contentLinks,
    poolOf: deployments === null ? undefined : toPoolOf(deployments),
    jobs: { ...jobs, watchJob: jobs.watching.watchJob },
    assets: { ...assets, maxUploadBytes: toUploadLimit(config, shared) },
  })
  const routerV2 = createRouterV2({
    ...router.actions,
    gate,
    spec: loadRouterSpec(http.brand),
    brands: http.brand,
    blobs: parts.blobs,
    pricedAt: () => router.models.catalog().loadedAt,
    cursorSecret: router.cursorSecret,
    maxBodyBytes: config.router.maxBodyBytes,
    holdMs: config.router.deadlineMs + HOLD_GRACE_MS,
    creditsPerUsd: config.router.creditsPerUsd,
    clock,
    log,
  })
  const content = createContentSurface({
    gate,
    answerError,
    verify: signer.verify,
    openContent: assets.openContent,
  })
  const guardAdmin = createStaticTokenGuard(secrets.adminToken?.reveal() ?? null)
  const operator = createOperatorSurface({
    // Where there are many accounts, what all of them do is nobody's business but the operator's.
    guardMetrics: shared === null ? (request) => gate.authenticate(request, 'bearer') : guardAdmin,
    notReadyReason: () => (jobs.worker.stats().isDraining ? 'draining' : null),
    metrics: async () => ({ contentType: metrics.contentType, text: await metrics.render() }),
  })
  const admin =
    secrets.adminToken === null ? [] : [openAdmin(config, { ...parts, guardAdmin, openStreams: jobsV2.openStreams })]
  const optional = await openOptionalSurfaces(toSurfaceParts(config, gate, parts))
  const server = await openServer({
    host: http.host,
    port: http.port,
    maxConnections: toConnectionLimit(readOpenFileLimit()),
    gate,
    surfaces: [
      jobsV2,
      routerV2,
      content,
      ...admin,
      operator,
      createDocs({ gate, document: spec.document }),
      ...optional,
    ],
    answerError,
    onAnswered: config.log.requests ? (request) => log.info(request, 'answered') : null,
    trace: openTracing(),
    routeDeployment: deployments === null ? null : createRouteDeployment(http.mountPrefix),
  })
  return { ...server, openStreams: jobsV2.openStreams, gauges: optional.flatMap(({ gauges }) => gauges ?? []) }
}

/** What surfaces that may be left out are given. */
function toSurfaceParts(config: Config, gate: Gate, parts: HttpParts): SurfaceParts {
  const { shared, signer, store, bus, fleet, jobs, assets, version, clock, log } = parts
  const given: SurfaceParts = {
    gate,
    clock,
    log,
    version,
    bus,
    catalog: () => fleet.catalog(),
    jobs: { ...jobs, chooseId: shared === null ? asChosen : withinAccount },
    isAtLimit: async (accountId) =>
      shared !== null &&
      ((await store.accounts.findUse(accountId))?.running ?? 0) >= shared.limitsOf(accountId).concurrentJobs,
    assets: assets.shelf,
    pictures: openPictures(),
    userFiles: createUserFiles({ store: store.userFiles, clock }),
    content: {
      sign: signer.sign,
      servesBytes: config.kind === 'local',
    },
    limits: {
      maxBodyBytes: config.http.maxBodyBytes,
      maxUploadBytes: config.assets.maxUploadBytes,
      maxSocketsPerAccount: toStreamLimit(config, shared),
    },
  }
  return parts.overrides.surfaceParts?.(given) ?? given
}
