/**
 * Any writing operation together with its line in the audit log, in one transaction. The operation itself need not know that
 * it is watched, and what it changes cannot be committed without the line.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { AuditEntry } from '../../../../../domain/accounts/audit.ts'
import { addAuditLine } from '../../../stores/audit-store.ts'
import { openStatements } from '../../statements.ts'
import type { Operations } from '../../threads/store-thread-protocol.ts'

interface AuditedInput {
  readonly name: string
  readonly input: unknown
  readonly entry: AuditEntry
}

export function prepareAudited(database: DatabaseSync, operations: Operations): (audited: AuditedInput) => unknown {
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
