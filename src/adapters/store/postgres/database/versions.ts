/**
 * Versions that appear in the order of the commits. A reader asks for everything above the version that it knows; with a bare
 * sequence a transaction that commits late would be skipped for ever. So whoever changes such a table holds its lock from
 * choosing the version to the commit. Operators change these tables, a few times a minute at most.
 */
import { type Queryable, statement } from './statement.ts'

const LOCK = statement('versions.lock', 'SELECT pg_advisory_xact_lock(7267302, $1::integer)')

const TABLES = { account_profile: 1, api_key: 2, deployment: 3, engine: 4 } as const

type VersionedTable = keyof typeof TABLES

/** To be called in the transaction before its first write to the table. */
export async function lockVersions(tx: Queryable, table: VersionedTable): Promise<void> {
  await tx.run(LOCK, [TABLES[table]])
}

/** For the SET or VALUES of a write. */
export function nextVersion(table: VersionedTable): string {
  return `(SELECT coalesce(max(version), 0) + 1 FROM ${table})`
}
