/**
 * Earlier builds kept outputs of a few kilobytes in the database (decision 74). What is left of them becomes files before anybody reads
 * bytes: first the file, then the row goes, so that a crash in between loses nothing and the next start goes on.
 */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { storeFiles } from '../database/data-directory.ts'
import { isDamage } from '../database/sqlite-error.ts'
import { prepareRows } from '../operations/statement.ts'

const AT_ONCE = 64
// A running service holds the database for milliseconds at a time.
const WAIT_MS = 5000

/** `keep`: stores the bytes durably, if they are what their hash says. Rows that cannot be read any more are left where they are. */
export async function moveSmallBytes(
  directory: string,
  keep: (hash: string, bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const { database: path } = storeFiles(directory)
  if (!existsSync(path)) return
  using database = new DatabaseSync(path, { timeout: WAIT_MS })
  try {
    if (database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'small_bytes'`).get() === undefined) return
    // A later backup must not contain what was removed.
    database.exec('PRAGMA secure_delete = ON')
    const select = prepareRows<[hash: string, bytes: Uint8Array]>(
      database,
      'SELECT hash, bytes FROM small_bytes LIMIT ?',
    )
    const remove = database.prepare('DELETE FROM small_bytes WHERE hash = ?')
    for (let rows = select.all(AT_ONCE); rows.length > 0; rows = select.all(AT_ONCE)) {
      await Promise.all(rows.map(([hash, bytes]) => keep(hash, bytes)))
      for (const [hash] of rows) remove.run(hash)
    }
  } catch (error) {
    if (!isDamage(error)) throw error
  }
}
