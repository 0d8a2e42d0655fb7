/** The event bus that the configuration names: within the process, or over the database that processes share. */
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { BusConfig } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'
import { toConnection } from './storage/postgres-connection.ts'

interface BusDeps {
  readonly secrets: Pick<Secrets, 'databasePassword'>
  readonly log: Log
}

type OpenedBus = EventBus<LiveEvent> & AsyncDisposable

export async function openBus(config: BusConfig, { secrets, log }: BusDeps): Promise<OpenedBus> {
  if (config.kind === 'local') return { ...createLocalBus<LiveEvent>({ log }), async [Symbol.asyncDispose]() {} }
  const { openPostgresNotifyBus } = await import('../adapters/bus/postgres-notify.ts')
  const { url, password, ssl } = toConnection(config.database, secrets.databasePassword)
  return openPostgresNotifyBus({ url, password, ssl, log })
}
