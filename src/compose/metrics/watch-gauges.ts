/** Connects the gauges to the parts of a running service that they are read from. */

import type { BusHealth } from '../../adapters/bus/bus-health.ts'
import type { Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { Store } from '../../domain/store.ts'
import type { OpenedBus } from '../bus/open-bus.ts'
import type { ServiceNodeParts } from '../process/service-node.ts'
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

// How the bus between processes is doing, as gauges; none where there is no other process.

const GAUGES: readonly (readonly [name: string, help: string, read: (health: BusHealth) => number])[] = [
  ['hearing', '1 while notices of other processes arrive, else 0.', ({ isHearing }) => (isHearing ? 1 : 0)],
  [
    'lag_seconds',
    'How long the latest notice to itself took; -1 when it did not come.',
    ({ lagMs }) => toSeconds(lagMs),
  ],
  ['reconnects', 'How often the connection for notices was lost.', ({ reconnects }) => reconnects],
  ['links_open', 'Processes whose live news are heard here.', ({ links }) => links.open],
  ['links_broken', 'Processes whose live news are wanted here and cannot be heard.', ({ links }) => links.broken],
  ['links_served', 'Processes that hear live what runs here.', ({ links }) => links.served],
  ['links_lost', 'Links to other processes that broke.', ({ links }) => links.lost],
  ['previews_dropped', 'Previews that were not sent to another process.', ({ links }) => links.previewsDropped],
  ['readers_given_up', 'Links that were closed because the reader was slow.', ({ links }) => links.readersGivenUp],
]

export function toBusGauges(bus: Pick<OpenedBus, 'health'>): readonly NamedGauge[] {
  const health = bus.health()
  if (health === null) return []
  return GAUGES.map(([name, help, read]) => ({
    name: `atelier_bus_${name}`,
    help,
    read: () => read(bus.health() ?? health),
  }))
}

function toSeconds(ms: number | null): number {
  return ms === null ? -1 : ms / 1000
}
