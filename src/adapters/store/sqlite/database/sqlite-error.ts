/** What SQLite's result codes mean to us; the extended codes carry the primary one in their low byte. */
import { StoreOpenError } from '../../../../domain/store.ts'

const SQLITE_BUSY = 5
export const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26

function hasPrimaryCode(error: unknown, code: number): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  return typeof error.errcode === 'number' && (error.errcode & 0xff) === code
}

export function isDiskFull(error: unknown): boolean {
  return hasPrimaryCode(error, SQLITE_FULL) || (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
}

export function isDamage(error: unknown): boolean {
  return hasPrimaryCode(error, SQLITE_CORRUPT) || hasPrimaryCode(error, SQLITE_NOTADB)
}

/** What keeps a database from being opened, in words for the operator where there is something to be done about it. */
export function toOpenError(error: unknown, path: string): unknown {
  if (error instanceof StoreOpenError) return error
  if (isDiskFull(error)) {
    return new StoreOpenError('unusable', `The disk that holds ${path} is full. Free some space and start again.`)
  }
  if (isDamage(error)) {
    const problem = error instanceof Error ? error.message : String(error)
    return new StoreOpenError(
      'unusable',
      `The database ${path} is damaged (${problem}). Restore it from a backup, or move the data directory away to start afresh.`,
    )
  }
  return error
}

export function isBusy(error: unknown): boolean {
  return hasPrimaryCode(error, SQLITE_BUSY)
}
