/** The event bus of the service. One process serves a data folder, so a bus within the process is enough. */
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'

export function openBus(log: Log): EventBus<LiveEvent> {
  return createLocalBus<LiveEvent>({ log })
}
