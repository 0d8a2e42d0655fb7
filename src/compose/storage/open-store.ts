/** The store that the configuration names. */

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { openSqliteStore } from '../../adapters/store/sqlite/open-sqlite-store.ts'
import type { PostgresConfig, StoreConfig } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { Store } from '../../domain/store.ts'
import { toConnection } from './postgres-connection.ts'

interface StoreDeps {
  readonly secrets: Pick<Secrets, 'databasePassword'>
  readonly clock: Clock
  readonly log: Log
}

export function openStore(config: StoreConfig, deps: StoreDeps): Promise<Store> {
  if (config.kind === 'postgres') return openPostgres(config, deps)
  const { clock, log } = deps
  const synchronous = config.synchronous === 'full' ? 'FULL' : 'NORMAL'
  return openSqliteStore({ directory: config.directory, synchronous, clock, log })
}

async function openPostgres(config: PostgresConfig, { secrets, clock, log }: StoreDeps): Promise<Store> {
  // Loaded only here: a service on SQLite starts without the client library.
  const { openPostgresStore } = await import('../../adapters/store/postgres/open-postgres-store.ts')
  const connection = toConnection(config, secrets.databasePassword)
  return openPostgresStore({ ...connection, migrates: config.migrate === 'auto', clock, log })
}
