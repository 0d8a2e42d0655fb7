/**
 * Bytes of outputs are the one thing in a database that may be lost without the rest: their jobs then have outputs that are
 * gone, as if a file had been lost. So a damaged table of them is replaced by one with all rows that can be read.
 */
import type { DatabaseSync } from 'node:sqlite'
import { isDamage } from '../database/sqlite-error.ts'
import { prepareRows } from '../operations/statement.ts'

/** True when the table was replaced: the pages of the old one are left behind for a VACUUM. False when it is sound, or beyond saving. */
export function salvageSmallBytes(database: DatabaseSync): boolean {
  try {
    const [verdict] = prepareRows<[string]>(database, 'PRAGMA integrity_check(small_bytes)').get() ?? ['ok']
    if (verdict === 'ok') return false
    copyReadable(database)
    replaceTable(database)
    return true
  } catch (error) {
    if (!isDamage(error)) throw error
    return false
  }
}

function copyReadable(database: DatabaseSync): void {
  database.exec('DROP TABLE IF EXISTS temp.readable; CREATE TEMP TABLE readable (hash TEXT, bytes BLOB)')
  const copy = database.prepare('INSERT INTO temp.readable SELECT hash, bytes FROM small_bytes WHERE rowid = ?')
  for (const [rowid] of findRows(database)) {
    try {
      copy.run(rowid)
    } catch (error) {
      if (!isDamage(error)) throw error
    }
  }
}

function findRows(database: DatabaseSync): [number][] {
  const read = (hint: string) => prepareRows<[number]>(database, `SELECT rowid FROM small_bytes ${hint}`).all()
  try {
    // The index knows rows behind a page of the table that makes no sense.
    return read('INDEXED BY small_bytes_hash')
  } catch (error) {
    if (!isDamage(error)) throw error
    return read('NOT INDEXED')
  }
}

/** SQLite cannot drop a table whose pages make no sense: its entry in the schema goes instead. */
function replaceTable(database: DatabaseSync): void {
  const parts = prepareRows<[sql: string]>(
    database,
    `SELECT sql FROM sqlite_schema WHERE tbl_name = 'small_bytes' ORDER BY type = 'index'`,
  ).all()
  database.enableDefensive(false)
  database.exec('PRAGMA writable_schema = ON')
  try {
    database.exec(`DELETE FROM sqlite_schema WHERE tbl_name = 'small_bytes'`)
  } finally {
    database.exec('PRAGMA writable_schema = RESET')
    database.enableDefensive(true)
  }
  for (const [sql] of parts) database.exec(sql)
  database.exec('INSERT INTO small_bytes SELECT hash, bytes FROM temp.readable; DROP TABLE temp.readable')
}
