/**
 * Migrations of a Postgres database. Any number of nodes may start at once: one runs what is pending, under a lock of the whole
 * database, and the others wait and find it done. A database that is newer than this program is fine as long as nothing was
 * taken away that this program needs.
 */
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../../../../lib/clock.ts'
import { StoreOpenError } from '../../../../domain/store.ts'
import { type AppliedMigration, type Migration, mustBeUnchanged } from '../../migration-files.ts'
import type { Connected } from './connections.ts'
import { type Queryable, statement } from './statement.ts'

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../../../migrations/postgres', import.meta.url))

const LOCK = statement('migrations.lock', 'SELECT pg_advisory_xact_lock(7267300)')
const EXISTS = statement<[boolean]>('migrations.exists', `SELECT to_regclass('schema_migration') IS NOT NULL`)
const APPLIED = statement<[number, string, string]>(
  'migrations.applied',
  'SELECT number, name, checksum FROM schema_migration ORDER BY number',
)
const ADD = statement(
  'migrations.add',
  'INSERT INTO schema_migration (number, name, checksum, applied_at) VALUES ($1, $2, $3, $4)',
)

export async function readApplied(db: Queryable): Promise<AppliedMigration[]> {
  const [exists] = (await db.get(EXISTS)) ?? [false]
  if (!exists) return []
  return (await db.all(APPLIED)).map(([number, name, checksum]) => ({ number, name, checksum }))
}

/** The migrations still to run. Throws when those that ran are not as they are known here. */
export function planMigrations(applied: readonly AppliedMigration[], known: readonly Migration[]): Migration[] {
  for (const entry of applied) {
    const migration = known[entry.number - 1]
    if (migration !== undefined) mustBeUnchanged(migration, entry)
  }
  return known.slice(applied.length)
}

/** Runs what is pending and returns the names. */
export async function applyMigrations(
  connected: Connected,
  known: readonly Migration[],
  clock: Clock,
): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const name = await applyNext(connected, known, clock)
    if (name === null) return names
    names.push(name)
  }
}

async function applyNext(connected: Connected, known: readonly Migration[], clock: Clock): Promise<string | null> {
  return connected.transaction(
    async (tx) => {
      await tx.run(LOCK)
      const [next] = planMigrations(await readApplied(tx), known)
      if (next === undefined) return null
      try {
        await tx.run({ name: '', text: CREATE_TABLE })
        await runScript(tx, next.sql)
        await tx.run(ADD, [next.number, next.name, next.checksum, clock.now().getTime()])
      } catch (error) {
        throw new StoreOpenError('failed_migration', `Migration ${next.name} failed and was undone: ${String(error)}`, {
          cause: error,
        })
      }
      return next.name
    },
    { isRepeatable: true },
  )
}

const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS schema_migration (
  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)`

/** A prepared statement holds one command, so the script is split where a line ends with a semicolon outside of a $$ body. */
async function runScript(tx: Queryable, sql: string): Promise<void> {
  let command = ''
  let isInBody = false
  for (const line of sql.split('\n')) {
    const code = line.replace(/^\s*--.*$/, '')
    if (code.trim() === '' && command === '') continue
    command += `${code}\n`
    if ((code.match(/\$\$/g)?.length ?? 0) % 2 === 1) isInBody = !isInBody
    if (isInBody || !/;\s*$/.test(code)) continue
    await tx.run({ name: '', text: command })
    command = ''
  }
  if (command.trim() !== '') await tx.run({ name: '', text: command })
}
