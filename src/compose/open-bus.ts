/** The event bus that the configuration names. One within the process is enough where one process serves the store. */
import type { EngineEvent } from '../../engine/graph/run-event.ts'
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { BusConfig } from '../config/config.ts'
import type { EventBus } from '../domain/events/event-bus.ts'

export function openBus({ kind }: BusConfig, { log }: { readonly log: Log }): EventBus<EngineEvent> {
  switch (kind) {
    case 'local':
      return createLocalBus<EngineEvent>({ log })
  }
}
