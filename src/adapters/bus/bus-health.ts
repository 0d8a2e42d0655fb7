/** How a bus between processes is doing, for readiness, metrics and the workers that rely on being woken. */
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import type { LinkStats } from './live/live-links.ts'

export interface BusHealth {
  readonly kind: 'notify' | 'nats'
  /** Whether notices of other processes arrive, as far as that is known. */
  readonly isHearing: boolean
  /** How long the latest notice to itself took; null: it did not come. */
  readonly lagMs: number | null
  readonly reconnects: number
  readonly links: LinkStats
}

/** The bus of one process among several. */
export interface ProcessBus extends EventBus<LiveEvent>, AsyncDisposable {
  health(): BusHealth
  /** True once everything that was said before has come back to this process; false when it does not within three seconds. */
  prove(): Promise<boolean>
}
