/** Migrations on their own, for the command line, and the check of a start that must not run them. */
import { type Clock, systemClock } from '../../../../../lib/clock.ts'
import { StoreOpenError } from '../../../../domain/store.ts'
import { loadMigrations, type Migration } from '../../migration-files.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { flag, integer, shape, text } from '../../tables/table.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY, planMigrations, readSchema } from './migrations.ts'
import { toOpenError } from './open-error.ts'
import type { ConnectionOptions } from './pool.ts'
import { openSession } from './session.ts'
import type { Queryable } from './statement.ts'

interface MigrateOptions extends Omit<ConnectionOptions, 'log'> {
  /** Say what would run and change nothing. */
  readonly dryRun?: boolean
  /** Also run what takes away, which is refused while an older program runs. */
  readonly contracts?: boolean
  readonly clock?: Clock
  readonly migrationsDirectory?: string
}

interface DatabaseStatus {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** Waits until an operator asks for it. */
  readonly toContract: readonly string[]
}

/** Runs what is pending and returns the state afterwards. Throws StoreOpenError. */
export async function migrate(options: MigrateOptions): Promise<DatabaseStatus> {
  const { clock = systemClock, dryRun = false, contracts = false } = options
  const known = loadMigrations(options.migrationsDirectory ?? MIGRATIONS_DIRECTORY)
  try {
    await using session = await openSession(options)
    await mustBeSupported(session)
    if (!dryRun) await applyMigrations(session, known, { clock, contracts, mustBeUnused: mustHaveNoOlderNode(clock) })
    return toStatus(await readSchema(session), known)
  } catch (error) {
    throw toOpenError(error, options.url)
  }
}

function toStatus(schema: Awaited<ReturnType<typeof readSchema>>, known: readonly Migration[]): DatabaseStatus {
  const { expand, contract } = planMigrations(schema, known)
  return {
    applied: schema.applied.map(({ name }) => name),
    pending: expand.map(({ name }) => name),
    toContract: contract.map(({ name }) => name),
  }
}

/** For a start that leaves migrations to an operator. */
export async function mustBeMigrated(db: Queryable, known: readonly Migration[]): Promise<void> {
  const { expand } = planMigrations(await readSchema(db), known)
  if (expand.length === 0) return
  throw new StoreOpenError(
    'pending_migrations',
    `The database lacks ${expand.length} migrations, from ${expand[0].name} on. Run \`atelier migrate\` first, or start with --migrate auto.`,
  )
}

const OLDEST_SUPPORTED = 150_000
const VERSION = query(
  'migrate.version',
  shape({ number: integer(), version: text() }),
  postgresOnly(`SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS version`),
)

export async function mustBeSupported(db: Queryable): Promise<void> {
  const { number, version } = (await db.get(VERSION)) ?? { number: 0, version: 'unknown' }
  if (number >= OLDEST_SUPPORTED) return
  throw new StoreOpenError('unusable', `The database server is Postgres ${version}; version 15 or newer is needed.`)
}

const HAS_NODES = query(
  'migrate.has-nodes',
  shape({ hasNodes: flag('boolean') }),
  postgresOnly(`SELECT to_regclass('node') IS NOT NULL AS has_nodes`),
)
const LIVE_NODES = query(
  'migrate.live-nodes',
  // As a text: an older process may have told less.
  shape({ id: text(), about: text() }),
  postgresOnly(`SELECT id, about FROM node
    WHERE alive_until > coalesce(:now::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) ORDER BY id`),
)

/** The processes that live on the database, by default by the server's clock; none before there is a table of them. */
export async function findLiveNodes(db: Queryable, now: Date | null = null) {
  const found = await db.get(HAS_NODES)
  return found?.hasNodes === true ? db.all(LIVE_NODES, { now }) : []
}

/** A process that does not say which schema it knows is older than any that does. */
function mustHaveNoOlderNode(clock: Clock): (db: Queryable, migration: Migration) => Promise<void> {
  return async (db, { number, name }) => {
    const older = (await findLiveNodes(db, clock.now())).filter(({ about }) => schemaOf(about) < number)
    if (older.length === 0) return
    const first = older.map(({ id }) => id).join(', ')
    throw new StoreOpenError(
      'failed_migration',
      `Migration ${name} takes away what ${older.length} running processes of an older version need (${first}). Replace or stop them first.`,
    )
  }
}

function schemaOf(about: string): number {
  try {
    const { schema } = JSON.parse(about) as { readonly schema?: unknown }
    return typeof schema === 'number' ? schema : 0
  } catch {
    return 0
  }
}
