/**
 * Migrations of a Postgres database that any number of processes may use, some of them older than others. What is added
 * (`expand`) runs first and disturbs nobody. What is taken away (`contract`) runs only when an operator asks for it, once no
 * older process is alive; from then on older programs are refused.
 */
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../../../../lib/clock.ts'
import { sleep } from '../../../../../lib/waiting/sleep.ts'
import { StoreOpenError } from '../../../../domain/store.ts'
import { type AppliedMigration, type Migration, mustBeUnchanged } from '../../migration-files.ts'
import { command, insertInto, postgresOnly, query, selectFrom, upsertInto } from '../../statements/statement.ts'
import { meta, schemaMigration } from '../../tables/service.ts'
import { flag, shape } from '../../tables/table.ts'
import type { Session } from './session.ts'
import type { Queryable } from './statement.ts'

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../../../migrations/postgres', import.meta.url))

const answer = shape({ isSo: flag('boolean') })
const LOCK = query('migrations.lock', answer, postgresOnly('SELECT pg_try_advisory_lock(7267300) AS is_so'))
const UNLOCK = command('migrations.unlock', postgresOnly('SELECT pg_advisory_unlock(7267300)'))
const EXISTS = query(
  'migrations.exists',
  answer,
  postgresOnly(`SELECT to_regclass('schema_migration') IS NOT NULL AS is_so`),
)
const APPLIED = query(
  'migrations.applied',
  schemaMigration,
  postgresOnly(selectFrom(schemaMigration, 'ORDER BY number')),
)
const ADD = command('migrations.add', postgresOnly(insertInto(schemaMigration)))
const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS schema_migration (
  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)`
// Kept as a value of the service: programs that know fewer migrations than this no longer fit.
const CONTRACTED = query('migrations.contracted', meta, postgresOnly(selectFrom(meta, `WHERE key = 'contracted_to'`)))
const CONTRACT = command('migrations.contract', postgresOnly(upsertInto(meta)))

const LOOK_EVERY_MS = 100
const LOCK_GIVE_UP_MS = 600_000
// Somebody's long transaction holds a table that is to be changed: try again between the transactions of others.
const LOCKED_TABLE = '55P03'
const MAX_TRIES = 20

interface Schema {
  readonly applied: readonly AppliedMigration[]
  /** Programs that know fewer migrations than this no longer fit; 0: all fit. */
  readonly contractedTo: number
}

export async function readSchema(db: Queryable): Promise<Schema> {
  const exists = await db.get(EXISTS)
  if (exists?.isSo !== true) return { applied: [], contractedTo: 0 }
  const applied = await db.all(APPLIED)
  const contracted = applied.length === 0 ? undefined : await db.get(CONTRACTED)
  return { applied, contractedTo: Number(contracted?.value ?? 0) }
}

interface MigrationPlan {
  readonly expand: readonly Migration[]
  readonly contract: readonly Migration[]
}

/** What is still to run. Throws when this program does not fit the database. */
export function planMigrations({ applied, contractedTo }: Schema, known: readonly Migration[]): MigrationPlan {
  if (contractedTo > known.length) {
    throw new StoreOpenError(
      'contracted_schema',
      `The database was changed by a newer version of Atelier in a way that this one cannot use (it knows ${known.length} migrations, and ${contractedTo} are needed). Run that version or a newer one.`,
    )
  }
  for (const entry of applied) {
    const migration = known[entry.number - 1]
    if (migration !== undefined) mustBeUnchanged(migration, entry)
  }
  const done = new Set(applied.map(({ number }) => number))
  const pending = known.filter(({ number }) => !done.has(number))
  return {
    expand: pending.filter(({ phase }) => phase === 'expand'),
    contract: pending.filter(({ phase }) => phase === 'contract'),
  }
}

interface ApplyOptions {
  readonly clock: Clock
  /** Also take away what only older programs need. */
  readonly contracts?: boolean
  /** Called under the lock, before anything is taken away. Throws when an older program still runs. */
  readonly mustBeUnused?: (db: Queryable, migration: Migration) => Promise<void>
}

/** Runs what is pending and returns the names. Of processes that ask at the same time one does it, and the others wait. */
export async function applyMigrations(
  session: Session,
  known: readonly Migration[],
  { clock, contracts = false, mustBeUnused = async () => {} }: ApplyOptions,
): Promise<string[]> {
  const isPending = ({ expand, contract }: MigrationPlan) => expand.length > 0 || (contracts && contract.length > 0)
  if (!isPending(planMigrations(await readSchema(session), known))) return []
  await lock(session)
  try {
    await session.client.query(CREATE_TABLE)
    const { expand, contract } = planMigrations(await readSchema(session), known)
    for (const migration of expand) await applyOne(session, migration, clock)
    if (!contracts) return expand.map(({ name }) => name)
    for (const migration of contract) {
      await mustBeUnused(session, migration)
      await applyOne(session, migration, clock)
    }
    return [...expand, ...contract].map(({ name }) => name)
  } finally {
    await session.run(UNLOCK).catch(() => {})
  }
}

/** By trying: a wait inside the server would hold a transaction open, which an index built beside live traffic waits for. */
async function lock(session: Session): Promise<void> {
  for (let waitedMs = 0; waitedMs < LOCK_GIVE_UP_MS; waitedMs += LOOK_EVERY_MS) {
    const locked = await session.get(LOCK)
    if (locked?.isSo === true) return
    await sleep(LOOK_EVERY_MS)
  }
  throw new StoreOpenError('locked', 'Another process has been changing the schema of the database for ten minutes.')
}

async function applyOne(session: Session, migration: Migration, clock: Clock): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return migration.isTransactional
        ? await session.transaction(() => runAndNote(session, migration, clock))
        : await runAndNote(session, migration, clock)
    } catch (error) {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
      if ((cause as { readonly code?: string }).code === LOCKED_TABLE && tries < MAX_TRIES) continue
      throw new StoreOpenError(
        'failed_migration',
        `Migration ${migration.name} failed and was undone: ${(cause as Error).message}`,
        { cause: error },
      )
    }
  }
}

async function runAndNote(session: Session, migration: Migration, clock: Clock): Promise<void> {
  const { number, name, checksum, sql, phase } = migration
  for (const text of toCommands(sql)) await session.client.query(text)
  await session.run(ADD, { number, name, checksum, appliedAt: clock.now() })
  if (phase === 'contract') await session.run(CONTRACT, { key: 'contracted_to', value: String(number) })
}

/** Each command on its own, so that one that cannot run inside a transaction does not: the script is split where a line ends with a semicolon outside of a $$ body. */
function toCommands(sql: string): string[] {
  const commands: string[] = []
  let command = ''
  let isInBody = false
  for (const line of sql.split('\n')) {
    const code = line.replace(/^\s*--.*$/, '')
    if (code.trim() === '' && command === '') continue
    command += `${code}\n`
    if ((code.match(/\$\$/g)?.length ?? 0) % 2 === 1) isInBody = !isInBody
    if (isInBody || !/;\s*$/.test(code)) continue
    commands.push(command)
    command = ''
  }
  return command.trim() === '' ? commands : [...commands, command]
}
