/** One process needs no more than this; a fleet of processes brings its own. */

import type { EngineEvent } from '../../engine/graph/run-event.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { EventBus } from '../domain/events/event-bus.ts'

export function openBus(): EventBus<EngineEvent> {
  return createLocalBus<EngineEvent>()
}
