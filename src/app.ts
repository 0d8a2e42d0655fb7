/**
 * The composition root: turns a checked configuration into a running service. It opens the parts in the order of their
 * dependencies and returns one object that closes them in the reverse order. Tests can override single parts.
 */

import type { Log } from '../lib/log.ts'
import { toBusGauges } from './compose/metrics/bus-gauges.ts'
import { openMetrics } from './compose/metrics/open-metrics.ts'
import { watchGauges } from './compose/metrics/watch-gauges.ts'
import { openTracing } from './compose/open-tracing.ts'
import { awaitEndOfStart } from './compose/process/end-of-start.ts'
import { createReadiness } from './compose/readiness.ts'
import { PARTS_OF } from './compose/roles.ts'
import type { ReloadOutcome } from './compose/router/open-models.ts'
import { drainInOrder } from './compose/start/drain-order.ts'
import { openService, type ServiceOverrides } from './compose/start/open-service.ts'
import { sweepLeftOverBytes } from './compose/storage/left-over-bytes.ts'
import { createStoreProbe } from './compose/storage/store-probe.ts'
import type { Config } from './config/config.ts'
import type { Secrets } from './config/secrets.ts'
import type { Engine } from './domain/engine/engine-port.ts'
import type { Fleet } from './domain/engine/fleet/fleet.ts'
import type { Store } from './domain/store.ts'
import type { HttpOverrides } from './http-parts.ts'
import { openHealthOnly } from './open-health.ts'
import { openHttp } from './open-http.ts'
import type { DeclaredRoute } from './surfaces/kit/guards/rights.ts'
import { errorTypeOf } from './surfaces/router-v2/router-error-types.ts'

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
  const service = await openService(config, secrets, {
    tracer,
    log,
    version,
    metrics,
    openingStore,
    overrides,
    opening,
  })
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
      ...{
        ...service,
        ...base,
        ...callers,
        ...running,
        secrets,
        directory,
        refreshLists,
        readiness,
        metrics,
        overrides,
        version,
      },
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
  router.models.watchFolders()
  running.start()
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
