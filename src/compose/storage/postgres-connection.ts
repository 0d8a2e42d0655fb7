/** Turns the settings of a Postgres database into what its adapters connect with. */
import type { ConnectionOptions } from '../../adapters/store/postgres/database/pool.ts'
import type { PostgresConfig } from '../../config/blocks/store-config.ts'
import type { Secret } from '../../config/secrets.ts'

export function toConnection(
  { url, maxConnections }: PostgresConfig,
  password: Secret<string> | null,
): Omit<ConnectionOptions, 'log'> {
  return { url, maxConnections, password: password?.reveal() }
}
