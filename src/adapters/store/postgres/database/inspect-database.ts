/** Reads what an operator should know about a database server, also while services run on it. Changes nothing. */
import { once } from 'node:events'
import { settlesWithin } from '../../../../../lib/waiting/sleep.ts'
import type { NodeAbout } from '../../../../domain/service-nodes/node-store.ts'
import { loadMigrations } from '../../migration-files.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { bytes, flag, integer, shape, text } from '../../tables/table.ts'
import { findLiveNodes, mustBeSupported } from './migrate-database.ts'
import { MIGRATIONS_DIRECTORY, planMigrations, readSchema } from './migrations.ts'
import { toOpenError } from './open-error.ts'
import type { ConnectionOptions } from './pool.ts'
import { openSession, type Session } from './session.ts'

export interface DatabaseFacts {
  readonly version: string
  /** The server's settings by name. */
  readonly settings: Readonly<Record<string, string>>
  /** What this user may not do; empty: all that is needed. */
  readonly missingRights: readonly string[]
  readonly connections: number
  /** How far the server's clock is ahead of this machine's, give or take half of `roundTripMs`. */
  readonly clockAheadMs: number
  readonly roundTripMs: number
  readonly migrations: {
    readonly applied: number
    readonly pending: readonly string[]
    readonly toContract: readonly string[]
  }
  readonly invalidIndexes: readonly string[]
  /** Partitions whose removal was begun and not finished. */
  readonly halfDetached: readonly string[]
  /** Tables with more removed rows than a vacuum should leave. */
  readonly bloated: readonly { readonly table: string; readonly dead: number; readonly live: number }[]
  /** The oldest transaction that keeps removed rows from being reclaimed. */
  readonly oldestSnapshotMs: number
  /** False behind a pooler that hands a connection to somebody else after each transaction. */
  readonly hearsNotices: boolean
  /** The processes that live on it now. */
  readonly nodes: readonly { readonly id: string; readonly about: NodeAbout }[]
  /** Replication slots without a reader, which keep the server's log from being removed. */
  readonly idleSlots: readonly string[]
  /** Some of what the service has sealed under its secret key; empty: nothing yet. */
  readonly sealed: readonly SealedSample[]
}

interface SealedSample {
  /** What it is bound to. */
  readonly context: string
  readonly bytes: Uint8Array
}

const SETTINGS = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'max_connections',
  'wal_level',
  'autovacuum',
] as const

const names = shape({ name: text() })
const number = shape({ value: integer() })
const READ = {
  server: query(
    'inspect.server',
    shape({ version: text(), mayUse: flag('boolean'), mayCreate: flag('boolean'), connections: integer() }),
    postgresOnly(`SELECT current_setting('server_version') AS version,
      has_schema_privilege(current_schema(), 'USAGE') AS may_use, has_schema_privilege(current_schema(), 'CREATE') AS may_create,
      (SELECT count(*) FROM pg_stat_activity) AS connections`),
  ),
  settings: query(
    'inspect.settings',
    shape({ name: text(), setting: text() }),
    postgresOnly('SELECT name, setting FROM pg_settings WHERE name = ANY(:names::text[])'),
  ),
  clock: query(
    'inspect.clock',
    number,
    postgresOnly('SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS value'),
  ),
  invalidIndexes: query(
    'inspect.invalid-indexes',
    names,
    postgresOnly(`SELECT indexrelid::regclass::text AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
      WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace AND relkind = 'i'`),
  ),
  halfDetached: query(
    'inspect.half-detached',
    names,
    postgresOnly('SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhdetachpending'),
  ),
  bloated: query(
    'inspect.bloated',
    shape({ table: text(), dead: integer(), live: integer() }),
    postgresOnly(`SELECT relname AS table, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
      WHERE schemaname = current_schema() AND n_dead_tup > 10000 AND n_dead_tup > n_live_tup
      ORDER BY n_dead_tup DESC LIMIT 10`),
  ),
  oldestSnapshot: query(
    'inspect.oldest-snapshot',
    number,
    postgresOnly(`SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8 * 1000 AS value
      FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()`),
  ),
  sealed: query(
    'inspect.sealed',
    shape({ context: text(), bytes: bytes() }),
    postgresOnly(`(SELECT key AS context, decode(value, 'base64') AS bytes FROM meta WHERE key = 'signing_keys')
      UNION ALL (SELECT job_id::text, sealed FROM job_secret ORDER BY job_id DESC LIMIT 3)
      UNION ALL (SELECT job_id::text, sealed FROM job_secret ORDER BY job_id LIMIT 3)`),
  ),
  idleSlots: query(
    'inspect.idle-slots',
    names,
    postgresOnly('SELECT slot_name::text AS name FROM pg_replication_slots WHERE NOT active'),
  ),
}

/** Throws StoreOpenError when the database cannot be used at all. */
export async function inspectDatabase(options: Omit<ConnectionOptions, 'log'>): Promise<DatabaseFacts> {
  try {
    await using session = await openSession(options)
    await mustBeSupported(session)
    return await readFacts(session)
  } catch (error) {
    throw toOpenError(error, options.url)
  }
}

async function readFacts(session: Session): Promise<DatabaseFacts> {
  const namesOf = async (asked: typeof READ.invalidIndexes) => (await session.all(asked)).map(({ name }) => name)
  const server = await session.get(READ.server)
  const oldestSnapshot = await session.get(READ.oldestSnapshot)
  const settings = await session.all(READ.settings, { names: SETTINGS })
  const migrations = await readMigrations(session)
  const nodes = await findLiveNodes(session)
  return {
    version: server?.version ?? '',
    settings: Object.fromEntries(settings.map(({ name, setting }) => [name, setting])),
    missingRights: [...(server?.mayUse ? [] : ['use']), ...(server?.mayCreate ? [] : ['create tables in'])],
    connections: server?.connections ?? 0,
    ...(await compareClocks(session)),
    migrations,
    invalidIndexes: await namesOf(READ.invalidIndexes),
    halfDetached: await namesOf(READ.halfDetached),
    bloated: await session.all(READ.bloated),
    oldestSnapshotMs: oldestSnapshot?.value ?? 0,
    hearsNotices: await hearNotice(session),
    nodes: nodes.map(({ id, about }) => ({ id, about: JSON.parse(about) as NodeAbout })),
    idleSlots: await namesOf(READ.idleSlots),
    sealed: migrations.applied === 0 ? [] : await session.all(READ.sealed),
  }
}

/** The second question, whose statement is prepared and whose round trip is therefore as short as it gets. */
async function compareClocks(session: Session): Promise<Pick<DatabaseFacts, 'clockAheadMs' | 'roundTripMs'>> {
  await session.get(READ.clock)
  const asked = Date.now()
  const { value: serverMs } = (await session.get(READ.clock)) ?? { value: 0 }
  const answered = Date.now()
  return { clockAheadMs: Math.round(serverMs - (asked + answered) / 2), roundTripMs: answered - asked }
}

const NOTICE_WITHIN_MS = 3000

async function hearNotice({ client }: Session): Promise<boolean> {
  const heard = once(client, 'notification')
  await client.query('LISTEN atelier_doctor')
  await client.query('NOTIFY atelier_doctor')
  const isHeard = await settlesWithin(heard, NOTICE_WITHIN_MS)
  await client.query('UNLISTEN atelier_doctor')
  return isHeard
}

async function readMigrations(session: Session): Promise<DatabaseFacts['migrations']> {
  const schema = await readSchema(session)
  const { expand, contract } = planMigrations(schema, loadMigrations(MIGRATIONS_DIRECTORY))
  return {
    applied: schema.applied.length,
    pending: expand.map(({ name }) => name),
    toContract: contract.map(({ name }) => name),
  }
}
