/**
 * What the writer does about a damaged database. It rebuilds the indexes from their tables; any other damage is beyond it. Then it
 * leaves a note beside the database, and the next start checks the whole database before it serves anybody.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { StoreOpenError } from '../../../../domain/store.ts'
import { isDamage, SQLITE_CORRUPT } from '../database/sqlite-error.ts'

interface DamageControl {
  /** Throws `UnrepairableDamage` when the database stays damaged: nothing can be stored from then on. */
  repair(): void
}

/** For the reader, which cannot repair: an operation that fails on a damaged database, so that its batch repairs it. */
export function prepareCheckDamage(database: DatabaseSync): (input: null) => void {
  return () => {
    const problem = findProblem(database)
    if (problem !== null) throw Object.assign(new Error(problem), { errcode: SQLITE_CORRUPT })
  }
}

export class UnrepairableDamage extends Error {
  override readonly name = 'UnrepairableDamage'
}

interface DamageOptions {
  readonly database: DatabaseSync
  /** Where the note is left. */
  readonly notePath: string
  readonly path: string
  readonly onRepaired: () => void
}

const ADVICE = 'Stop the service and restore the data folder from a backup; `atelier verify` says what is damaged.'

export function openDamageControl({ database, notePath, path, onRepaired }: DamageOptions): DamageControl {
  if (existsSync(notePath)) {
    const problem = findProblem(database)
    if (problem !== null)
      throw new StoreOpenError('unusable', `The database ${path} is damaged (${problem}). ${ADVICE}`)
    rmSync(notePath)
  }
  return {
    repair() {
      const problem = mend(database) ?? findProblem(database)
      if (problem === null) return onRepaired()
      writeFileSync(notePath, `${problem}\n`, { mode: 0o600 })
      throw new UnrepairableDamage(`the database ${path} is damaged (${problem}). ${ADVICE}`)
    },
  }
}

/** Returns why it could not be done, or null when it was. */
function mend(database: DatabaseSync): string | null {
  try {
    rebuildIndexes(database)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function rebuildIndexes(database: DatabaseSync): void {
  const indexes = database
    .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    .all()
    .map(({ name, sql }): Index => ({ name: String(name), sql: String(sql) }))
  const broken = indexes.filter(({ name }) => !canReindex(database, name))
  // SQLite cannot even drop an index whose pages make no sense: its entry in the schema goes, and the pages it leaves
  // behind go with the next VACUUM.
  if (broken.length > 0) replaceIndexes(database, broken)
  database.exec('REINDEX')
}

interface Index {
  readonly name: string
  readonly sql: string
}

function canReindex(database: DatabaseSync, name: string): boolean {
  try {
    database.exec(`REINDEX "${name}"`)
    return true
  } catch (error) {
    if (isDamage(error)) return false
    throw error
  }
}

function replaceIndexes(database: DatabaseSync, broken: readonly Index[]): void {
  database.enableDefensive(false)
  database.exec('PRAGMA writable_schema = ON')
  try {
    const forget = database.prepare("DELETE FROM sqlite_schema WHERE type = 'index' AND name = ?")
    for (const { name } of broken) forget.run(name)
  } finally {
    database.exec('PRAGMA writable_schema = RESET')
    database.enableDefensive(true)
  }
  for (const { sql } of broken) database.exec(sql)
  database.exec('VACUUM')
}

/** null when the database is sound. */
function findProblem(database: DatabaseSync): string | null {
  try {
    const { integrity_check: verdict } = database.prepare('PRAGMA integrity_check(1)').get() as Record<string, unknown>
    return verdict === 'ok' ? null : String(verdict).replaceAll(/\s+/g, ' ')
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
