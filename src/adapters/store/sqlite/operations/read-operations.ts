/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareShared, type SharedOperations } from '../shared-stores.ts'
import { prepareFindClaim } from './jobs/claim-job.ts'

export function prepareReadOperations(database: DatabaseSync) {
  return {
    ...prepareShared(database, 'reader'),
    findClaim: prepareFindClaim(database),
    checkIntegrity: prepareCheckIntegrity(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations> & SharedOperations

/** Walks the whole database: `ok`, or what is wrong with it. */
function prepareCheckIntegrity(database: DatabaseSync): (input: null) => string {
  const check = database.prepare('PRAGMA integrity_check')
  return () =>
    check
      .all()
      .map((row) => String(row['integrity_check']))
      .join('\n')
}
