/** Turns the settings of a Postgres database into what its adapter connects with. */
import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from '../../adapters/store/postgres/database/pool.ts'
import type { PostgresConfig } from '../../config/blocks/store-config.ts'
import { ConfigError, quote } from '../../config/config-error.ts'
import type { Secret } from '../../config/secrets.ts'

export function toConnection(config: PostgresConfig, password: Secret<string> | null): Omit<ConnectionOptions, 'log'> {
  const { url, maxConnections } = config
  return { url, maxConnections, password: password?.reveal(), ssl: toTls(config) }
}

function toTls({ tls, rootCertificateFile }: PostgresConfig): ConnectionOptions['ssl'] {
  if (tls === 'disable') return false
  if (tls === 'require') return { rejectUnauthorized: false }
  const ca = rootCertificateFile === null ? undefined : readCertificate(rootCertificateFile)
  // The name in the certificate is what sets the two apart.
  return tls === 'verify-full' ? { ca } : { ca, checkServerIdentity: () => undefined }
}

function readCertificate(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new ConfigError(
      `database names the sslrootcert ${quote(path)}, which cannot be read (${code}); correct the path`,
    )
  }
}
