/** Lines of the audit log, each in the transaction of the change that it tells of: neither is committed without the other. */
import {
  type AuditEntry,
  type AuditQuery,
  type AuditRecord,
  toAuditOutcome,
} from '../../../../../domain/accounts/audit.ts'
import { AUDIT_COLUMNS, type AuditRow, toAuditRecord } from '../../../rows/audit-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const INSERT = statement(
  'audit.insert',
  'INSERT INTO audit_log (actor, action, subject, at, details, outcome) VALUES ($1, $2, $3, $4, $5, $6)',
)

/** `result` is what the change returned; of a change outside of the store there is none. */
export async function addAuditLine(tx: Queryable, entry: AuditEntry, result?: unknown): Promise<void> {
  const { actor, action, subject, at, details } = entry
  await tx.run(INSERT, [actor, action, subject, at.getTime(), JSON.stringify(details), toAuditOutcome(result)])
}

const LIST = statement<AuditRow>(
  'audit.list',
  `SELECT ${AUDIT_COLUMNS} FROM audit_log WHERE seq < $1 ORDER BY seq DESC LIMIT $2`,
)
const LIST_OF_SUBJECT = statement<AuditRow>(
  'audit.listOfSubject',
  `SELECT ${AUDIT_COLUMNS} FROM audit_log WHERE subject = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2`,
)

export async function listAuditLines(db: Queryable, { limit, before, subject }: AuditQuery): Promise<AuditRecord[]> {
  const page = [before ?? Number.MAX_SAFE_INTEGER, limit]
  const rows = await (subject === null ? db.all(LIST, page) : db.all(LIST_OF_SUBJECT, [...page, subject]))
  return rows.map(toAuditRecord)
}
