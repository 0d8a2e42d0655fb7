/**
 * One process per data directory. The lock is SQLite's own lock on an empty file: the operating system gives it up when the
 * process ends in whatever way, so there are no stale locks to clean. The holder's process id stands in a file beside it,
 * for the message only.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { StoreOpenError } from '../../../../domain/store.ts'
import { isBusy } from './sqlite-error.ts'

export interface DirectoryLock {
  /** Twice is harmless. */
  release(): void
}

function readHolder(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return 'unknown'
  }
}

function writeHolder(path: string): void {
  try {
    writeFileSync(path, `${process.pid}\n`, { mode: 0o600 })
  } catch {
    // A full disk must not keep the service from starting: the lock itself needs no room.
  }
}

export function lockDirectory(directory: string, lockFile: string): DirectoryLock {
  const database = new DatabaseSync(lockFile, { timeout: 0 })
  const holderFile = `${lockFile}.pid`
  try {
    // Nothing is ever written, so no journal is wanted beside the file.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN IMMEDIATE')
  } catch (error) {
    database.close()
    if (isBusy(error)) {
      throw new StoreOpenError(
        'locked',
        `The data directory ${directory} is in use by process ${readHolder(holderFile)}. Stop that process or choose another data directory.`,
      )
    }
    throw new StoreOpenError('unusable', `The data directory ${directory} cannot be locked: ${String(error)}`, {
      cause: error,
    })
  }
  writeHolder(holderFile)
  return {
    release() {
      if (database.isOpen) database.close()
    },
  }
}
