/** What `atelier doctor` learns of a Postgres database. */
import { createSealer } from '../../../lib/sealer.ts'
import type { DatabaseFacts as StoredFacts } from '../../adapters/store/postgres/database/inspect-database.ts'
import type { PostgresConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { toConnection } from './postgres-connection.ts'

export interface DatabaseFacts extends Omit<StoredFacts, 'sealed'> {
  /** Whether the secret key opens what the service has sealed; null: nothing is sealed yet, or no key is set. */
  readonly secretKeyOpens: boolean | null
}

/** Throws StoreOpenError with a message for the operator. */
export async function inspectPostgres(
  config: PostgresConfig,
  secrets: Pick<Secrets, 'databasePassword' | 'secretKey' | 'formerSecretKeys'>,
): Promise<DatabaseFacts> {
  const { inspectDatabase } = await import('../../adapters/store/postgres/database/inspect-database.ts')
  const { sealed, ...facts } = await inspectDatabase(toConnection(config, secrets.databasePassword))
  return { ...facts, secretKeyOpens: opensAll(sealed, secrets) }
}

function opensAll(
  sealed: StoredFacts['sealed'],
  { secretKey, formerSecretKeys }: Pick<Secrets, 'secretKey' | 'formerSecretKeys'>,
): boolean | null {
  if (secretKey === null || sealed.length === 0) return null
  const sealer = createSealer(
    secretKey.reveal(),
    formerSecretKeys.map((key) => key.reveal()),
  )
  return sealed.every(({ context, bytes }) => sealer.open(bytes, context) !== null)
}
