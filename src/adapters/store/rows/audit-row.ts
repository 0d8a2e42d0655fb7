/** A line of the audit log as both stores select it. */
import type { AuditRecord } from '../../../domain/accounts/audit.ts'

export const AUDIT_COLUMNS = 'seq, actor, action, subject, at, details, outcome'

export type AuditRow = [
  seq: number,
  actor: string,
  action: string,
  subject: string,
  at: number,
  details: string,
  outcome: string,
]

export function toAuditRecord([seq, actor, action, subject, at, details, outcome]: AuditRow): AuditRecord {
  const read = JSON.parse(details) as Record<string, unknown>
  return { seq, actor, action, subject, at: new Date(at), details: read, outcome }
}
