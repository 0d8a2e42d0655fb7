/** Everything the writer can do. An operation depends on the database and its input alone, because a batch may run again. */
import type { DatabaseSync } from 'node:sqlite'
import { ESSENTIAL_SHARED, prepareShared, RELAXED_SHARED, type SharedOperations } from '../shared-stores.ts'
import { prepareAudited } from './accounts/audited-writes.ts'
import { createClaimTurns, prepareClaim, prepareRelease } from './jobs/claim-job.ts'

export function prepareWriteOperations(database: DatabaseSync) {
  const turns = createClaimTurns(database)
  const operations = {
    ...prepareShared(database, 'writer'),
    claim: prepareClaim(database, turns),
    release: prepareRelease(database, turns),
  }
  return { ...operations, audited: prepareAudited(database, operations) }
}

export type WriteOperations = ReturnType<typeof prepareWriteOperations> & SharedOperations

/**
 * Operations that are acknowledged without a sync. A power cut that undoes a claim or a renewed lease also ends the worker that
 * held it, and the job waits in the queue as before, and so it is with the leases of calls and of webhooks; bytes whose announcement
 * is undone are left over, and the next start sweeps them; a number of a prompt or of an output was written before the
 * job or the output that carries it, which is synced. Who lives and who holds what is said again every few seconds. The end of the process alone
 * undoes nothing, and the next synced write makes these durable too.
 */
export const RELAXED_OPERATIONS: ReadonlySet<string> = new Set<keyof WriteOperations>([...RELAXED_SHARED, 'claim'])

/**
 * Operations that still run when the disk is full, in the room that is set aside: those that make room, end what is under way,
 * or withdraw a right. All others are refused until there is room again.
 */
export const ESSENTIAL_OPERATIONS: ReadonlySet<string> = new Set<keyof WriteOperations>([
  ...ESSENTIAL_SHARED,
  'release',
  'audited',
])
