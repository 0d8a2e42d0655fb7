/** Checks a database from outside, also while a service runs on it. Reads only. */
import { DatabaseSync } from 'node:sqlite'
import { findReferredBytes, type VerifiedDatabase } from '../../stores/referred-bytes.ts'
import { runOn } from '../shared-stores.ts'
import { openStatements } from '../statements.ts'
import { storeFiles } from './data-directory.ts'
import { toOpenError } from './sqlite-error.ts'

const MAX_PROBLEMS = 20

export function verifyDatabase(directory: string): VerifiedDatabase {
  const { database: path } = storeFiles(directory)
  try {
    using database = new DatabaseSync(path, { readOnly: true })
    const found = database.prepare(`PRAGMA integrity_check(${MAX_PROBLEMS})`).all()
    const problems = found.map((row) => String(row['integrity_check'])).filter((verdict) => verdict !== 'ok')
    return { problems, blobs: runOn(openStatements(database), findReferredBytes()) }
  } catch (cause) {
    const error = toOpenError(cause, path)
    return { problems: [error instanceof Error ? error.message : String(error)], blobs: new Map() }
  }
}
