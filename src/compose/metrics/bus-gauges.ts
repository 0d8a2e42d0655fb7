/** How the bus between processes is doing, as gauges; none where there is no other process. */
import type { BusHealth } from '../../adapters/bus/bus-health.ts'
import type { OpenedBus } from '../bus/open-bus.ts'
import type { NamedGauge } from './open-metrics.ts'

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
