/**
 * Earlier builds kept outputs of a few kilobytes in the database (decision 74). What is left of them becomes files when a service
 * starts: first the file, then the row goes, so that a crash in between loses nothing and the next start goes on. Until then they
 * can be read where they lie.
 */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Blake3 } from '../../../../../lib/files/blake3.ts'
import type { Log } from '../../../../../lib/log.ts'
import { query, sqliteOnly } from '../../statements/statement.ts'
import { bytes, integer, type RowOf, shape, text } from '../../tables/table.ts'
import { storeFiles } from '../database/data-directory.ts'
import { isDamage } from '../database/sqlite-error.ts'
import { openStatements, type Statements } from '../statements.ts'

const AT_ONCE = 64
// A running service holds the database for milliseconds at a time.
const WAIT_MS = 5000

/** What lies in the database still. Bytes that are not what their hash says count as gone. Nothing is changed by looking. */
export interface SmallBytes extends Disposable {
  list(): Iterable<readonly string[]>
  read(hash: string): Uint8Array | null
}

/** null: there are none, or no database that could hold any. */
export function openSmallBytes(directory: string, blake3: Blake3): SmallBytes | null {
  const opened = openTable(directory, { readOnly: true })
  if (opened === null) return null
  const isWhole = (hash: string, bytes: Uint8Array) => blake3.hash(bytes) === hash
  const statements = openStatements(opened.database)
  return {
    *list() {
      for (const rows of opened.pages()) {
        yield rows.filter(({ hash, bytes }) => isWhole(hash, bytes)).map(({ hash }) => hash)
      }
    },
    read(hash) {
      try {
        const found = statements.get(FIND, { hash })
        return found !== undefined && isWhole(hash, found.bytes) ? found.bytes : null
      } catch (error) {
        if (!isDamage(error)) throw error
        return null
      }
    },
    [Symbol.dispose]: () => opened.database.close(),
  }
}

/**
 * For whoever has the folder to itself. `keep` stores the bytes durably, or says that they are not what their hash says. A failure is
 * told in the log: what could not be moved is left for the next time.
 */
export async function moveSmallBytes(
  directory: string,
  keep: (hash: string, bytes: Uint8Array) => Promise<boolean>,
  log: Log,
): Promise<void> {
  try {
    const opened = openTable(directory, { timeout: WAIT_MS })
    if (opened === null) return
    using database = opened.database
    log.info({}, 'outputs that an earlier version kept in the database become files')
    // A later backup must not contain what was removed.
    database.exec('PRAGMA secure_delete = ON')
    // By its number: the index of the hashes may be damaged.
    const remove = database.prepare('DELETE FROM small_bytes WHERE rowid = ?')
    let moved = 0
    for (const rows of opened.pages()) {
      const kept = await Promise.allSettled(rows.map(({ hash, bytes }) => keep(hash, bytes)))
      for (const [index, outcome] of kept.entries()) {
        if (outcome.status === 'rejected') throw outcome.reason
        if (!outcome.value) log.warn({ hash: rows[index]?.hash }, 'a damaged output of an earlier version was dropped')
      }
      database.exec('BEGIN IMMEDIATE')
      for (const { rowid } of rows) remove.run(rowid)
      database.exec('COMMIT')
      moved += rows.length
    }
    log.info({ outputs: moved }, 'outputs of an earlier version are files now')
  } catch (error) {
    log.error({ err: error }, 'outputs of an earlier version stay in the database until the next start')
  }
}

const row = shape({ rowid: integer(), hash: text(), bytes: bytes() })
const FIND = query('smallBytes.find', row, sqliteOnly('SELECT rowid, hash, bytes FROM small_bytes WHERE hash = :hash'))
const PAGE = query(
  'smallBytes.page',
  row,
  sqliteOnly('SELECT rowid, hash, bytes FROM small_bytes WHERE rowid > :after ORDER BY rowid LIMIT :limit'),
)

/** null: nothing lies in it. */
function openTable(directory: string, options: { readonly readOnly?: boolean; readonly timeout?: number }) {
  const { database: path } = storeFiles(directory)
  if (!existsSync(path)) return null
  const database = new DatabaseSync(path, options)
  try {
    if (database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'small_bytes'`).get() !== undefined) {
      const statements = openStatements(database)
      if (statements.get(PAGE, { after: 0, limit: 1 }) !== undefined) return { database, pages: () => walk(statements) }
    }
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  database.close()
  return null
}

function* walk(statements: Statements): Generator<readonly RowOf<typeof row>[]> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const rows: readonly RowOf<typeof row>[] = statements.all(PAGE, { after, limit: AT_ONCE })
    if (rows.length > 0) yield rows
    after = rows.at(-1)?.rowid
  }
}
