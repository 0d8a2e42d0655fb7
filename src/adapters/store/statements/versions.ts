/**
 * Lists of which every process keeps a copy. A reader asks for everything above the version that it knows, so versions appear in the
 * order of the commits: with a bare sequence a transaction that commits late would be skipped for ever. So whoever changes such a table
 * on a server holds its lock from choosing the version to the commit. Operators change these tables, a few times a minute at most.
 */
import type { Column, Columns, RowOf, Shape, Table } from '../tables/table.ts'
import { type Asked, all, run, type Steps } from './operation.ts'
import { both, command, query, selectFrom } from './statement.ts'

const LOCKS = { account_profile: 1, api_key: 2, deployment: 3 } as const

const LOCK = command(
  'versions.lock',
  both({ sqlite: null, postgres: 'SELECT pg_advisory_xact_lock(7267302, CAST(:lock AS integer))' }),
)

/** To be asked for before the first write to the table. */
export function lockVersions(table: keyof typeof LOCKS): Asked<number> {
  return run(LOCK, { lock: LOCKS[table] })
}

/** For the SET or VALUES of a write. */
export function nextVersion(table: keyof typeof LOCKS): string {
  return `(SELECT coalesce(max(version), 0) + 1 FROM ${table})`
}

/** `changedAfter` of a store: the rows above a version, in the order of their changes. */
export function changedAfter<Fields extends Columns & { readonly version: Column<number> }>(table: Table<Fields>) {
  const CHANGED = query(
    `${table.name}.changed`,
    table,
    selectFrom(table, 'WHERE version > :version ORDER BY version LIMIT :limit'),
  )
  return function* (version: number, limit: number): Steps<RowOf<Shape<Fields>>[]> {
    return yield* all(CHANGED, { version, limit })
  }
}
