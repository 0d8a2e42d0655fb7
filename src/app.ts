/**
 * The composition root: from a checked configuration to a running service. It opens every part in the order in which they
 * need each other and gives back one thing that ends them all in the reverse order. Tests hand in overrides for single parts.
 */
import { type AssetActions, createAssetActions } from './compose/asset-actions.ts'
import { bindBlobs } from './compose/bind-blobs.ts'
import { readOpenFileLimit, toConnectionLimit } from './compose/connection-limit.ts'
import { createJobActions, type JobActions } from './compose/job-actions.ts'
import { openBlobs } from './compose/open-blobs.ts'
import { openBus } from './compose/open-bus.ts'
import { type FleetOverrides, openFleet } from './compose/open-engines.ts'
import { type Metrics, openMetrics } from './compose/open-metrics.ts'
import { openStore, type Store } from './compose/open-store.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import { LOCAL_ACCOUNT_ID } from './domain/accounts/account.ts'
import { createLocalAuthenticate } from './domain/accounts/caller.ts'
import type { Engine } from './domain/engine/engine.ts'
import type { Fleet } from './domain/engine/fleet.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { createSealer } from './lib/sealer.ts'
import { createDocs } from './surfaces/docs/index.ts'
import { createAnswerError } from './surfaces/jobs-v2/errors.ts'
import { createJobsV2 } from './surfaces/jobs-v2/index.ts'
import { loadSpec } from './surfaces/jobs-v2/spec.ts'
import { createGate } from './surfaces/kit/gate.ts'
import { createOperatorSurface } from './surfaces/kit/health.ts'
import { openTracing } from './surfaces/kit/tracing.ts'
import { openServer } from './surfaces/server.ts'

export interface AppOverrides extends FleetOverrides {
  readonly clock?: Clock
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
}

export async function startApp(config: Config, secrets: Secrets, options: AppOptions): Promise<App> {
  const { log, version, overrides = {} } = options
  const clock = overrides.clock ?? systemClock
  await using opening = new AsyncDisposableStack()
  const store = opening.use(await openStore(config.store, { clock, log }))
  const opened = await openBlobs(config.blobs, config.assets, log)
  await bindBlobs(store, config.blobs.directory)
  const { fleet, resident } = await openFleet(config, { clock, log, store, overrides })
  opening.use(fleet)
  const metrics = openMetrics(version)
  const assets = createAssetActions(config.assets, { store, opened, clock, log })
  const sealer = secrets.secretKey === null ? null : createSealer(secrets.secretKey.reveal())
  const bus = openBus()
  const { maxOvertakes } = config.fleet
  const parts = {
    store,
    blobs: opened.blobs,
    bus,
    fleet,
    assets,
    sealer,
    observer: metrics.observer,
    clock,
    log,
    maxOvertakes,
  }
  const jobs = createJobActions(config.jobs, parts)
  opening.defer(() => jobs.reader.stop())
  opening.use(jobs.watching)
  await prepareStore(config, store, jobs)
  opening.use(jobs.worker)
  opening.use(jobs.engineDrain)
  opening.use(jobs.housekeeping)
  const http = opening.use(await openHttp(config, { secrets, jobs, assets, metrics, clock, log }))
  watchGauges(metrics, { store, jobs, fleet, openStreams: http.openStreams })
  const sweeping = new AbortController()
  const swept = sweepLeftOvers(assets, sweeping.signal, log)
  opening.defer(async () => {
    sweeping.abort()
    await swept
  })
  jobs.housekeeping.start()
  if (config.jobs.workers > 0) jobs.worker.start()
  const running = opening.move()

  return {
    url: http.url,
    store,
    fleet,
    engine: resident,
    failed: store.failed,
    async drain() {
      const deadline = new Date(clock.now().getTime() + config.jobs.drainTimeoutMs)
      await jobs.worker.drain({ deadline })
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

function watchGauges(
  metrics: Metrics,
  parts: { store: Store; jobs: JobActions; fleet: Fleet; openStreams: () => number },
): void {
  metrics.watch({
    countJobs: () => parts.store.jobs.countByStatus(),
    runningHere: () => parts.jobs.worker.stats().running,
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

interface HttpParts {
  readonly secrets: Secrets
  readonly jobs: JobActions
  readonly assets: AssetActions
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Log
}

async function openHttp(config: Config, { secrets, jobs, assets, metrics, clock, log }: HttpParts) {
  const { http } = config
  const gate = createGate({
    brands: http.brand,
    bindHost: http.host,
    hasCredentials: secrets.token !== null,
    authenticate: createLocalAuthenticate(secrets.token?.reveal() ?? null),
    allowedHosts: http.allowedHosts,
    corsOrigins: http.corsOrigins,
    publicUrl: http.publicUrl,
    mountPrefix: http.mountPrefix,
    trustedProxies: http.trustedProxies,
  })
  const spec = loadSpec(http.brand)
  const answerError = createAnswerError(log)
  const jobsV2 = createJobsV2({
    gate,
    spec,
    answerError,
    clock,
    maxBodyBytes: http.maxBodyBytes,
    maxStreamsPerAccount: http.maxStreams,
    jobs: { ...jobs, watchJob: jobs.watching.watchJob },
    assets: { ...assets, maxUploadBytes: config.assets.maxUploadBytes },
  })
  const operator = createOperatorSurface({
    gate,
    notReadyReason: () => (jobs.worker.stats().isDraining ? 'draining' : null),
    metrics: async () => ({ contentType: metrics.contentType, text: await metrics.render() }),
  })
  const server = await openServer({
    host: http.host,
    port: http.port,
    maxConnections: toConnectionLimit(readOpenFileLimit()),
    gate,
    surfaces: [jobsV2, operator, createDocs({ gate, document: spec.document })],
    answerError,
    onAnswered: config.log.requests ? (request) => log.info(request, 'answered') : null,
    trace: openTracing(),
  })
  return { ...server, openStreams: jobsV2.openStreams }
}
