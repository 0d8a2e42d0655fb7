/** Reads what an operator should know about a database server, also while services run on it. Changes nothing. */
import { once } from 'node:events'
import { settlesWithin } from '../../../../../lib/waiting/sleep.ts'
import type { NodeAbout } from '../../../../domain/service-nodes/node-store.ts'
import { loadMigrations } from '../../migration-files.ts'
import { mustBeSupported } from './migrate-database.ts'
import { MIGRATIONS_DIRECTORY, planMigrations, readSchema } from './migrations.ts'
import { toOpenError } from './open-error.ts'
import type { ConnectionOptions } from './pool.ts'
import { openSession, type Session } from './session.ts'
import { statement } from './statement.ts'

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

const READ = {
  version: statement<[string]>('inspect.version', `SELECT current_setting('server_version')`),
  settings: statement<[string, string]>(
    'inspect.settings',
    'SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])',
  ),
  rights: statement<[boolean, boolean]>(
    'inspect.rights',
    `SELECT has_schema_privilege(current_schema(), 'USAGE'), has_schema_privilege(current_schema(), 'CREATE')`,
  ),
  connections: statement<[number]>('inspect.connections', 'SELECT count(*) FROM pg_stat_activity'),
  clock: statement<[number]>('inspect.clock', 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000'),
  invalidIndexes: statement<[string]>(
    'inspect.invalid-indexes',
    `SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
     WHERE NOT indisvalid AND relnamespace = current_schema()::regnamespace AND relkind = 'i'`,
  ),
  halfDetached: statement<[string]>(
    'inspect.half-detached',
    'SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhdetachpending',
  ),
  bloated: statement<[string, number, number]>(
    'inspect.bloated',
    `SELECT relname, n_dead_tup, n_live_tup FROM pg_stat_user_tables
     WHERE schemaname = current_schema() AND n_dead_tup > 10000 AND n_dead_tup > n_live_tup
     ORDER BY n_dead_tup DESC LIMIT 10`,
  ),
  oldestSnapshot: statement<[number]>(
    'inspect.oldest-snapshot',
    `SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8 * 1000
     FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()`,
  ),
  hasNodes: statement<[boolean]>('inspect.has-nodes', `SELECT to_regclass('node') IS NOT NULL`),
  nodes: statement<[string, string]>(
    'inspect.nodes',
    `SELECT id, about FROM node WHERE alive_until > extract(epoch FROM clock_timestamp()) * 1000 ORDER BY id`,
  ),
  sealed: statement<[context: string, bytes: Uint8Array]>(
    'inspect.sealed',
    `(SELECT key, decode(value, 'base64') FROM meta WHERE key = 'signing_keys')
     UNION ALL (SELECT job_id::text, sealed FROM job_secret ORDER BY job_id DESC LIMIT 3)
     UNION ALL (SELECT job_id::text, sealed FROM job_secret ORDER BY job_id LIMIT 3)`,
  ),
  idleSlots: statement<[string]>(
    'inspect.idle-slots',
    'SELECT slot_name::text FROM pg_replication_slots WHERE NOT active',
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
  const texts = async (asked: typeof READ.invalidIndexes) => (await session.all(asked)).map(([text]) => text)
  const [version = ''] = (await session.get(READ.version)) ?? []
  const [mayUse, mayCreate] = (await session.get(READ.rights)) ?? [false, false]
  const [connections = 0] = (await session.get(READ.connections)) ?? []
  const [oldestSnapshotMs = 0] = (await session.get(READ.oldestSnapshot)) ?? []
  const bloated = await session.all(READ.bloated)
  const migrations = await readMigrations(session)
  const sealed = migrations.applied === 0 ? [] : await session.all(READ.sealed)
  return {
    version,
    settings: Object.fromEntries(await session.all(READ.settings, [SETTINGS])),
    missingRights: [...(mayUse ? [] : ['use']), ...(mayCreate ? [] : ['create tables in'])],
    connections,
    ...(await compareClocks(session)),
    migrations,
    invalidIndexes: await texts(READ.invalidIndexes),
    halfDetached: await texts(READ.halfDetached),
    bloated: bloated.map(([table, dead, live]) => ({ table, dead, live })),
    oldestSnapshotMs,
    hearsNotices: await hearNotice(session),
    nodes: await readNodes(session),
    idleSlots: await texts(READ.idleSlots),
    sealed: sealed.map(([context, bytes]) => ({ context, bytes })),
  }
}

async function readNodes(session: Session): Promise<DatabaseFacts['nodes']> {
  const [hasNodes] = (await session.get(READ.hasNodes)) ?? [false]
  const rows = hasNodes ? await session.all(READ.nodes) : []
  return rows.map(([id, about]) => ({ id, about: JSON.parse(about) as NodeAbout }))
}

/** The second question, whose statement is prepared and whose round trip is therefore as short as it gets. */
async function compareClocks(session: Session): Promise<Pick<DatabaseFacts, 'clockAheadMs' | 'roundTripMs'>> {
  await session.get(READ.clock)
  const asked = Date.now()
  const [serverMs = 0] = (await session.get(READ.clock)) ?? []
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
