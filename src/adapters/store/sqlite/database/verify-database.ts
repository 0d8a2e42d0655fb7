/** Checks a database from outside, also while a service runs on it. Reads only. */
import { DatabaseSync } from 'node:sqlite'
import { storeFiles } from './data-directory.ts'
import { toOpenError } from './sqlite-error.ts'

interface RecordedBlob {
  readonly hash: string
  readonly sizeBytes: number
}

interface VerifiedDatabase {
  /** In SQLite's words; empty when the database is sound. */
  readonly problems: readonly string[]
  /** Bytes that some asset or output refers to. */
  readonly blobs: ReadonlyMap<string, RecordedBlob>
}

const MAX_PROBLEMS = 20

export function verifyDatabase(directory: string): VerifiedDatabase {
  const { database: path } = storeFiles(directory)
  try {
    const database = new DatabaseSync(path, { readOnly: true })
    try {
      const found = database.prepare(`PRAGMA integrity_check(${MAX_PROBLEMS})`).all()
      const problems = found.map((row) => String(row['integrity_check'])).filter((verdict) => verdict !== 'ok')
      const rows = database.prepare('SELECT DISTINCT hash, size_bytes FROM asset').all()
      const blobs = rows.map((row) => ({ hash: String(row['hash']), sizeBytes: Number(row['size_bytes']) }))
      return { problems, blobs: new Map(blobs.map((blob) => [blob.hash, blob])) }
    } finally {
      database.close()
    }
  } catch (cause) {
    const error = toOpenError(cause, path)
    return { problems: [error instanceof Error ? error.message : String(error)], blobs: new Map() }
  }
}
