/** The event bus of the service. One process serves a data folder, so a bus within the process is enough. */
import type { EngineEvent } from '../../engine/graph/run-event.ts'
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { EventBus } from '../domain/events/event-bus.ts'

export function openBus(log: Log): EventBus<EngineEvent> {
  return createLocalBus<EngineEvent>({ log })
}
