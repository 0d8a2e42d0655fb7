/** Connects the gauges to the parts of a running service that they are read from. */
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { Store } from '../../domain/store.ts'
import type { ServiceNodeParts } from '../process/open-service-node.ts'
import type { OpenedJobs } from '../start/open-jobs.ts'
import type { Metrics, NamedGauge } from './open-metrics.ts'

interface GaugeParts {
  /** Whether this process reports the figures of the whole service. */
  readonly tellsService: boolean
  readonly store: Pick<Store, 'stats' | 'upkeep' | 'jobs' | 'webhooks'>
  readonly node: ServiceNodeParts
  readonly running: OpenedJobs
  readonly fleet: Fleet
  readonly openStreams: () => number
  /** Of single parts. */
  readonly gauges: readonly NamedGauge[]
}

const BACKLOG_MAX = 10_000

export function watchGauges(metrics: Metrics, parts: GaugeParts): void {
  const { store, node, fleet, openStreams, gauges } = parts
  const { jobs, pools, poolSignals } = parts.running
  metrics.watch({
    gauges,
    nodeId: node.heartbeat.nodeId,
    isLeading: () => node.leadership.isHeld(),
    service: parts.tellsService
      ? {
          countJobs: () => store.jobs.countByStatus(),
          poolSignals: () => poolSignals.list(),
          webhookBacklog: () => store.webhooks.backlog(BACKLOG_MAX),
        }
      : null,
    runningHere: () => jobs.worker.stats().running + (pools?.workers.running() ?? 0),
    openStreams,
    engines: () => fleet.status(),
    groupCommit: () => store.stats().write,
    storeHealth: store.upkeep?.health ?? null,
  })
}
