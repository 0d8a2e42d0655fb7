/** The event bus that the configuration names. One within the process is enough where one process serves the store. */
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { BusConfig } from '../config/config.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'

export function openBus({ kind }: BusConfig, { log }: { readonly log: Log }): EventBus<LiveEvent> {
  switch (kind) {
    case 'local':
      return createLocalBus<LiveEvent>({ log })
  }
}
