/**
 * A lock between processes of one machine. It is SQLite's own lock on an empty file: the operating system gives it up when its
 * process ends in whatever way, so there are no stale locks to clean.
 */
import { DatabaseSync } from 'node:sqlite'
import { sleep } from '../waiting/sleep.ts'

export interface FileLock extends Disposable {
  /** Twice is harmless. */
  release(): void
}

const LOOK_AGAIN_MS = 250
const BEGIN = { exclusive: 'BEGIN EXCLUSIVE', shared: 'BEGIN; SELECT count(*) FROM sqlite_master' } as const

/** null: another one has it. Several may have it shared at the same time. */
export function tryLock(path: string, kind: keyof typeof BEGIN = 'exclusive'): FileLock | null {
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    // Nothing is ever written, so no journal is wanted beside the file.
    database.exec(`PRAGMA journal_mode = MEMORY; ${BEGIN[kind]}`)
  } catch (error) {
    database.close()
    if (/locked|busy/i.test(String(error))) return null
    throw error
  }
  const release = () => {
    if (database.isOpen) database.close()
  }
  return { release, [Symbol.dispose]: release }
}

/** Waits for it. Throws the reason of the signal. */
export async function takeLock(
  path: string,
  signal: AbortSignal,
  kind: keyof typeof BEGIN = 'exclusive',
): Promise<FileLock> {
  for (;;) {
    signal.throwIfAborted()
    const lock = tryLock(path, kind)
    if (lock !== null) return lock
    await sleep(LOOK_AGAIN_MS, signal)
  }
}
