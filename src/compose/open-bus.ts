/** The event bus that the configuration names. One within the process is enough where one process serves the store. */
import type { Log } from '../../lib/log.ts'
import { createLocalBus } from '../adapters/bus/local.ts'
import type { BusConfig, PostgresConfig } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { LiveEvent } from '../domain/events/live-event.ts'
import { toConnection } from './storage/postgres-connection.ts'

interface BusDeps {
  readonly secrets: Pick<Secrets, 'databasePassword'>
  readonly log: Log
}

type OpenedBus = EventBus<LiveEvent> & AsyncDisposable

export async function openBus(config: BusConfig, deps: BusDeps): Promise<OpenedBus> {
  switch (config.kind) {
    case 'local':
      return { ...createLocalBus<LiveEvent>({ log: deps.log }), [Symbol.asyncDispose]: async () => {} }
    case 'notify':
      return openNotifyBus(config.database, deps)
  }
}

async function openNotifyBus(database: PostgresConfig, { secrets, log }: BusDeps): Promise<OpenedBus> {
  // Loaded only here: a service on SQLite starts without the client library.
  const { openPostgresNotifyBus } = await import('../adapters/bus/postgres-notify.ts')
  const { url, password, ssl } = toConnection(database, secrets.databasePassword)
  return openPostgresNotifyBus({ url, password, ssl, log })
}
