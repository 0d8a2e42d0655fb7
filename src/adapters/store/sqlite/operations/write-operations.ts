/** Everything the writer can do. An operation depends on the database and its input alone, because a batch may run again. */
import type { DatabaseSync } from 'node:sqlite'
import type { AuditEntry } from '../../../../domain/accounts/audit.ts'
import { addAuditLine } from '../../stores/audit-store.ts'
import { ESSENTIAL_SHARED, prepareShared, RELAXED_SHARED, type SharedOperations } from '../shared-stores.ts'
import { openStatements } from '../statements.ts'
import type { Operations } from '../threads/store-thread-protocol.ts'
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

/**
 * Any writing operation together with its line in the audit log, in one transaction. The operation itself need not know that
 * it is watched, and what it changes cannot be committed without the line.
 */
interface AuditedInput {
  readonly name: string
  readonly input: unknown
  readonly entry: AuditEntry
}

function prepareAudited(database: DatabaseSync, operations: Operations): (audited: AuditedInput) => unknown {
  const statements = openStatements(database)
  return ({ name, input, entry }) => {
    const operation = operations[name]
    if (operation === undefined) throw new Error(`The store thread knows no operation ${name}.`)
    const result = operation(input as never)
    const { statement, values } = addAuditLine(entry, result)
    statements.run(statement, values)
    return result
  }
}
