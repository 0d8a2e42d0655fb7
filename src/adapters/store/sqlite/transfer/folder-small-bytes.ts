/** Small outputs in the database of a data folder, as commands see them, also while a service runs on it. */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { storeFiles } from '../database/data-directory.ts'
import { isDamage } from '../database/sqlite-error.ts'
import { prepareFindBytes, prepareListBytes, prepareRemoveBytes } from '../operations/assets/small-bytes.ts'

interface FolderSmallBytes extends Disposable {
  list(): Iterable<readonly string[]>
  find(hash: string): Uint8Array | null
  /**
   * Only if they are still wrong: a service may have stored them anew meanwhile. Rows that cannot be read are left to the
   * service, which repairs its database.
   */
  removeWrong(hash: string, isWrong: (bytes: Uint8Array) => boolean): void
}

const PAGE = 500
// A running service holds the database for milliseconds at a time.
const WAIT_MS = 5000

/** A folder without a database, with one of an earlier version, or with one that makes no sense, has none. */
export function openFolderSmallBytes(directory: string): FolderSmallBytes {
  const { database: path } = storeFiles(directory)
  const database = openWithTable(path)
  if (database === null) return { list: () => [], find: () => null, removeWrong() {}, [Symbol.dispose]() {} }
  const find = prepareFindBytes(database)
  const listAfter = prepareListBytes(database)
  function hasWrong(hash: string, isWrong: (bytes: Uint8Array) => boolean): boolean {
    try {
      const bytes = find(hash)
      return bytes !== null && isWrong(bytes)
    } catch (error) {
      if (!isDamage(error)) throw error
      return false
    }
  }

  return {
    *list() {
      let hashes = listAfter({ after: '', limit: PAGE })
      while (hashes.length > 0) {
        yield hashes
        hashes = listAfter({ after: hashes[hashes.length - 1], limit: PAGE })
      }
    },
    find,
    removeWrong(hash, isWrong) {
      if (!hasWrong(hash, isWrong)) return
      const writing = new DatabaseSync(path, { timeout: WAIT_MS })
      try {
        writing.exec('BEGIN IMMEDIATE')
        const bytes = prepareFindBytes(writing)(hash)
        if (bytes !== null && isWrong(bytes)) prepareRemoveBytes(writing)(hash)
        writing.exec('COMMIT')
      } finally {
        writing.close()
      }
    },
    [Symbol.dispose]: () => database.close(),
  }
}

function openWithTable(path: string): DatabaseSync | null {
  if (!existsSync(path)) return null
  const database = new DatabaseSync(path, { readOnly: true, timeout: WAIT_MS })
  try {
    if (database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'small_bytes'`).get() !== undefined) return database
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  database.close()
  return null
}
