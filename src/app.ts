/**
 * The composition root: turns a checked configuration into a running service. It opens the parts in the order of their
 * dependencies and returns one object that closes them in the reverse order. Tests can override single parts.
 */

import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { sleep } from '../lib/waiting/sleep.ts'
import { sweepLeftOverBytes } from './compose/asset-actions.ts'
import { openMetrics } from './compose/metrics/open-metrics.ts'
import { toBusGauges, watchGauges } from './compose/metrics/watch-gauges.ts'
import { openTracing } from './compose/open-tracing.ts'
import { awaitEndOfStart } from './compose/process/runtime.ts'
import type { ServiceNodeParts } from './compose/process/service-node.ts'
import { createReadiness, type Readiness } from './compose/readiness.ts'
import { PARTS_OF } from './compose/roles.ts'
import type { ReloadOutcome } from './compose/router/open-models.ts'
import type { Router } from './compose/router/open-router.ts'
import type { OpenedJobs } from './compose/start/open-jobs.ts'
import { openService, type ServiceOverrides } from './compose/start/open-service.ts'
import { createStoreProbe } from './compose/storage/open-store.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import type { Engine } from './domain/engine/engine-port.ts'
import type { Fleet } from './domain/engine/fleet/fleet.ts'
import type { Store } from './domain/store.ts'
import { openHealthOnly } from './listeners/health.ts'
import type { HttpOverrides } from './listeners/http-parts.ts'
import { openHttp } from './listeners/open-http.ts'
import type { DeclaredRoute } from './surfaces/kit/guards/routes.ts'
import { errorTypeOf } from './surfaces/router-v2/router-errors.ts'

export interface AppOverrides extends ServiceOverrides, HttpOverrides {}

interface AppOptions {
  readonly log: Log
  readonly version: string
  /** Opened before, while the rest of the program was loaded; left out: opened here. */
  readonly store?: Promise<Store>
  readonly overrides?: AppOverrides
}

export interface App extends AsyncDisposable {
  readonly url: string
  /** Of ComfyUI's own editor; null: it is not served. */
  readonly frontendUrl: string | null
  /** Whether the root of the service leads to a page for people, and not only to the reference of the API. */
  readonly hasConsole: boolean
  /** Every route with what it needs; those of ComfyUI's editor have an address of their own. */
  readonly routes: readonly DeclaredRoute[]
  readonly frontendRoutes: readonly DeclaredRoute[]
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
  const { version, store: openingStore, overrides = {} } = options
  const { role } = config
  await using opening = new AsyncDisposableStack()
  // Closed last: whatever ends before it is still told.
  const { tracer, log } = opening.use(
    await openTracing(config.traces, { headers: secrets.traceHeaders, version, log: options.log }),
  )
  const metrics = openMetrics({ version, role, errorTypeOf })
  const serviceOptions = { tracer, log, version, metrics, openingStore, overrides, opening }
  const service = await openService(config, secrets, serviceOptions)
  const { base, callers, engines, resident, bus, assets, running, router } = service
  const { store, serviceFile, node, opened, clock } = base
  const { fleet, directory, refreshLists } = engines
  const readiness = createReadiness({
    storeAnswers: createStoreProbe(store, () => performance.now()),
    isClockSane: base.isClockSane,
    hasRoom: opened.hasRoom,
    parts: { blobs: opened.answers, bus: async () => bus.health()?.isHearing !== false },
  })
  const { surfaces: hasSurfaces } = PARTS_OF[role]
  const open = hasSurfaces ? openHttp : openHealthOnly
  const http = opening.use(
    await open(config, {
      ...{ ...service, ...base, ...callers, ...running },
      ...{ secrets, directory, refreshLists, catalogOf: engines.catalogOf, readiness, metrics, overrides, version },
      blobs: opened.blobs,
      workerKeys: callers.workerKeys.keys,
      own: node.own,
      counts: node.counts,
    }),
  )
  watchGauges(metrics, {
    ...{ node, running, fleet, store },
    tellsService: hasSurfaces,
    openStreams: http.openStreams,
    gauges: [...http.gauges, ...opened.gauges, ...toBusGauges(bus)],
  })
  // Beside other processes, bytes without a record may be bytes whose record is on its way.
  if (store.isExclusive) opening.use(sweepLeftOverBytes(assets, log))
  node.listensAt(http.url)
  await service.listensAt(http.url)
  await node.heartbeat.beat()
  node.heartbeat.start()
  running.jobs.housekeeping.start()
  router.actions.queue.start()
  service.webhooks.start()
  if (hasSurfaces) service.schedules.start()
  if (hasSurfaces) service.bulk.start()
  router.models.watchFolders()
  running.start()
  service.released.start()
  await serviceFile?.announce(http.url, config.http.mountPrefix)
  opening.use(awaitEndOfStart())
  const closing = opening.move()

  return {
    url: http.url,
    frontendUrl: http.frontendUrl,
    hasConsole: http.hasConsole,
    routes: http.routes,
    frontendRoutes: http.frontendRoutes,
    store,
    fleet,
    engine: resident,
    reloadModels: () => router.reload(),
    failed: store.failed,
    drain: () => drainInOrder(config, { readiness, node, running, router, http, clock }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** The order in which a process ends its work: it says so, stops taking work, finishes what runs, and closes its streams. */
interface DrainParts {
  readonly readiness: Pick<Readiness, 'drain'>
  readonly node: Pick<ServiceNodeParts, 'drain'>
  readonly running: OpenedJobs
  readonly router: Pick<Router, 'drain'>
  readonly http: { close(): Promise<void> }
  readonly clock: Clock
}

async function drainInOrder(config: Config, parts: DrainParts): Promise<void> {
  const { readiness, node, running, router, http, clock } = parts
  const { drainDelayMs, drainTimeoutMs } = config.jobs
  readiness.drain()
  node.drain()
  // Proxies go on sending requests until they have seen that this process is not ready any more.
  await sleep(drainDelayMs)
  const deadline = new Date(clock.now().getTime() + drainTimeoutMs)
  // If nothing runs here that a client could be waiting for, streams end at once so that clients reconnect elsewhere.
  const closed = PARTS_OF[config.role].engines ? null : http.close()
  await Promise.all([
    running.jobs.worker.drain({ deadline }),
    running.pools?.drain({ deadline }),
    router.drain(drainTimeoutMs),
  ])
  await (closed ?? http.close())
}
