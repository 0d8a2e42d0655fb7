/** A line of the audit log, in the transaction of the change that it tells of: neither is committed without the other. */
import { type AuditEntry, toAuditOutcome } from '../../../../../domain/accounts/audit.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const INSERT = statement(
  'audit.insert',
  'INSERT INTO audit_log (actor, action, subject, at, details, outcome) VALUES ($1, $2, $3, $4, $5, $6)',
)

export async function addAuditLine(tx: Queryable, entry: AuditEntry, result: unknown): Promise<void> {
  const { actor, action, subject, at, details } = entry
  await tx.run(INSERT, [actor, action, subject, at.getTime(), JSON.stringify(details), toAuditOutcome(result)])
}
