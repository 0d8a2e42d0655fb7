/** One process needs no more than this; a fleet of processes brings its own. */

import type { EngineEvent } from '../../engine/graph/run-event.ts'
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { EventBus } from '../domain/events/event-bus.ts'

export function openBus(log: Log): EventBus<EngineEvent> {
  return createLocalBus<EngineEvent>({ log })
}
