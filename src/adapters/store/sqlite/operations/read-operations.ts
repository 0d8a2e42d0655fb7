/** Everything the reader can answer. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareShared, type SharedOperations } from '../shared-stores.ts'
import { prepareFindClaim } from './jobs/claim-job.ts'
import { prepareCheckIntegrity } from './meta.ts'

export function prepareReadOperations(database: DatabaseSync) {
  return {
    ...prepareShared(database, 'reader'),
    findClaim: prepareFindClaim(database),
    checkIntegrity: prepareCheckIntegrity(database),
  }
}

export type ReadOperations = ReturnType<typeof prepareReadOperations> & SharedOperations
