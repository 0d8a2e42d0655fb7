/** What `atelier doctor` learns of a Postgres database. */
import type { DatabaseFacts } from '../../adapters/store/postgres/database/inspect-database.ts'
import type { PostgresConfig } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { toConnection } from './postgres-connection.ts'

export type { DatabaseFacts }

/** Throws StoreOpenError with a message for the operator. */
export async function inspectPostgres(
  config: PostgresConfig,
  secrets: Pick<Secrets, 'databasePassword'>,
): Promise<DatabaseFacts> {
  const { inspectDatabase } = await import('../../adapters/store/postgres/database/inspect-database.ts')
  return inspectDatabase(toConnection(config, secrets.databasePassword))
}
