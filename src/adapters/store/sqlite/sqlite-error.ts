/** What SQLite's result codes mean to us; the extended codes carry the primary one in their low byte. */
const SQLITE_BUSY = 5
const SQLITE_FULL = 13

function hasPrimaryCode(error: unknown, code: number): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  return typeof error.errcode === 'number' && (error.errcode & 0xff) === code
}

export function isDiskFull(error: unknown): boolean {
  return hasPrimaryCode(error, SQLITE_FULL) || (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
}

export function isBusy(error: unknown): boolean {
  return hasPrimaryCode(error, SQLITE_BUSY)
}
