/**
 * The store's files inside the data directory. Only the owner may read them: the database holds workflows, names and logs of
 * whoever uses the service. SQLite gives its side files (-wal, -shm) the mode of the database file.
 */
import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'

export interface StoreFiles {
  readonly database: string
  readonly lock: string
  /** Room for what must be written when the disk is full. */
  readonly reserve: string
  /** Exists while the database is known to be damaged. */
  readonly damageNote: string
}

export function storeFiles(directory: string): StoreFiles {
  return {
    database: join(directory, 'atelier.db'),
    lock: join(directory, 'lock.db'),
    reserve: join(directory, 'reserve'),
    damageNote: join(directory, 'damaged'),
  }
}

function createPrivateFile(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
}

/** Creates what is missing and lets only the owner in. */
export function prepareDataDirectory(directory: string): StoreFiles {
  const files = storeFiles(directory)
  const isNew = !existsSync(files.database)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  chmodSync(directory, 0o700)
  createPrivateFile(files.lock)
  createPrivateFile(files.database)
  if (isNew) syncDirectory(directory)
  return files
}

// A commit is durable only if the file survives a power cut, and a new file does only once its directory is synced.
function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
