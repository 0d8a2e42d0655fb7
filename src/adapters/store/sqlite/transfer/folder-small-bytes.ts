/** Small outputs in the database of a data folder, as commands see them, also while a service runs on it. */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { storeFiles } from '../database/data-directory.ts'
import { prepareFindBytes, prepareListBytes, prepareRemoveBytes } from '../operations/assets/small-bytes.ts'

interface FolderSmallBytes extends Disposable {
  list(): Iterable<readonly string[]>
  find(hash: string): Uint8Array | null
  remove(hash: string): void
}

const PAGE = 500
// A running service holds the database for milliseconds at a time.
const WAIT_MS = 5000

/** A folder without a database, or with one of an earlier version, has none. */
export function openFolderSmallBytes(directory: string): FolderSmallBytes {
  const { database: path } = storeFiles(directory)
  const database = existsSync(path) ? new DatabaseSync(path, { readOnly: true, timeout: WAIT_MS }) : null
  const isThere = database?.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'small_bytes'`).get() !== undefined
  if (database === null || !isThere) {
    database?.close()
    return { list: () => [], find: () => null, remove() {}, [Symbol.dispose]() {} }
  }
  const find = prepareFindBytes(database)
  const listAfter = prepareListBytes(database)
  return {
    *list() {
      let hashes = listAfter({ after: '', limit: PAGE })
      while (hashes.length > 0) {
        yield hashes
        hashes = listAfter({ after: hashes[hashes.length - 1], limit: PAGE })
      }
    },
    find,
    remove(hash) {
      const writing = new DatabaseSync(path, { timeout: WAIT_MS })
      try {
        prepareRemoveBytes(writing)(hash)
      } finally {
        writing.close()
      }
    },
    [Symbol.dispose]: () => database.close(),
  }
}
