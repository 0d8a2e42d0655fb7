/**
 * What the writer does about a damaged database. Indexes can be made anew from their tables; whatever else is damaged cannot
 * be mended here. Then a file says so, and the next start looks the whole database over before it serves anybody.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { isDamage, SQLITE_CORRUPT } from '../database/sqlite-error.ts'
import { StoreOpenError } from '../database/store-open-error.ts'

export interface DamageControl {
  /** Throws `BeyondMending` when the database stays damaged: nothing can be stored from then on. */
  mend(): void
}

/** For whoever cannot mend: an operation that fails on a damaged database, so that the machinery around it mends it. */
export function prepareCheckDamage(database: DatabaseSync): (input: null) => void {
  return () => {
    const problem = findProblem(database)
    if (problem !== null) throw Object.assign(new Error(problem), { errcode: SQLITE_CORRUPT })
  }
}

export class BeyondMending extends Error {
  override readonly name = 'BeyondMending'
}

export interface DamageOptions {
  readonly database: DatabaseSync
  /** Where the damage is noted. */
  readonly notePath: string
  readonly path: string
  readonly onMended: () => void
}

const ADVICE = 'Stop the service and restore the data folder from a backup; `atelier verify` says what is damaged.'

export function openDamageControl({ database, notePath, path, onMended }: DamageOptions): DamageControl {
  if (existsSync(notePath)) {
    const problem = findProblem(database)
    if (problem !== null)
      throw new StoreOpenError('unusable', `The database ${path} is damaged (${problem}). ${ADVICE}`)
    rmSync(notePath)
  }
  return {
    mend() {
      const problem = remakeIndexes(database) ?? findProblem(database)
      if (problem === null) return onMended()
      writeFileSync(notePath, `${problem}\n`, { mode: 0o600 })
      throw new BeyondMending(`the database ${path} is damaged (${problem}). ${ADVICE}`)
    },
  }
}

/** Returns why it could not be done, or null. */
function remakeIndexes(database: DatabaseSync): string | null {
  try {
    const indexes = database
      .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
      .all() as unknown as Index[]
    const broken = indexes.filter(({ name }) => !canReindex(database, name))
    // SQLite cannot even drop an index whose pages make no sense: its entry in the schema goes, and the pages it leaves
    // behind go with the next VACUUM.
    if (broken.length > 0) replaceIndexes(database, broken)
    database.exec('REINDEX')
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
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

/** null when all is well. */
export function findProblem(database: DatabaseSync): string | null {
  try {
    const { integrity_check: verdict } = database.prepare('PRAGMA integrity_check(1)').get() as Record<string, unknown>
    return verdict === 'ok' ? null : String(verdict).replaceAll(/\s+/g, ' ')
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
