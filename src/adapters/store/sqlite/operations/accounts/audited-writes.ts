/**
 * Any writing operation together with its line in the audit log, in one transaction. The operation itself need not know that
 * it is watched, and what it changes cannot be committed without the line.
 */
import type { DatabaseSync } from 'node:sqlite'
import {
  type AuditEntry,
  type AuditQuery,
  type AuditRecord,
  toAuditOutcome,
} from '../../../../../domain/accounts/audit.ts'
import { AUDIT_COLUMNS, type AuditRow, toAuditRecord } from '../../../rows/audit-row.ts'
import type { Operations } from '../../threads/store-thread-protocol.ts'
import { prepareRows } from '../statement.ts'

interface AuditedInput {
  readonly name: string
  readonly input: unknown
  readonly entry: AuditFields
}

interface AuditFields {
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly at: number
  /** JSON. */
  readonly details: string
}

export function toAuditFields({ actor, action, subject, at, details }: AuditEntry): AuditFields {
  return { actor, action, subject, at: at.getTime(), details: JSON.stringify(details) }
}

function prepareInsert(database: DatabaseSync): (entry: AuditFields, outcome: string) => void {
  const insert = database.prepare(`
    INSERT INTO audit_log (actor, action, subject, at, details, outcome) VALUES (?, ?, ?, ?, ?, ?)`)
  return ({ actor, action, subject, at, details }, outcome) => {
    insert.run(actor, action, subject, at, details, outcome)
  }
}

/** A line of its own, for what changes outside of the store. */
export function prepareNoteAudit(database: DatabaseSync): (entry: AuditFields) => void {
  const insert = prepareInsert(database)
  return (entry) => insert(entry, 'done')
}

export function prepareAudited(database: DatabaseSync, operations: Operations): (audited: AuditedInput) => unknown {
  const insert = prepareInsert(database)
  return ({ name, input, entry }) => {
    const operation = operations[name]
    if (operation === undefined) throw new Error(`The store thread knows no operation ${name}.`)
    const result = operation(input as never)
    insert(entry, toAuditOutcome(result))
    return result
  }
}

export function prepareListAudit(database: DatabaseSync): (query: AuditQuery) => AuditRecord[] {
  const select = prepareRows<AuditRow>(
    database,
    `SELECT ${AUDIT_COLUMNS} FROM audit_log WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2`,
  )
  const selectSubject = prepareRows<AuditRow>(
    database,
    `SELECT ${AUDIT_COLUMNS} FROM audit_log WHERE subject = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2`,
  )
  return ({ limit, before, subject }) => {
    const from = before ?? Number.MAX_SAFE_INTEGER
    const rows = subject === null ? select.all(from, limit) : selectSubject.all(from, limit, subject)
    return rows.map(toAuditRecord)
  }
}
