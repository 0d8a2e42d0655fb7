/** Lines of the audit log, each in the transaction of the change that it tells of: neither is committed without the other. */
import { type AuditEntry, type AuditStore, toAuditOutcome } from '../../../domain/accounts/audit.ts'
import { type Asked, all, defineStore, durable, read, run } from '../statements/operation.ts'
import { command, insertInto, query, selectFrom } from '../statements/statement.ts'
import { auditLog } from '../tables/accounts.ts'
import { encode, omit } from '../tables/table.ts'

const line = omit(auditLog, 'seq')
const INSERT = command('audit.insert', insertInto(auditLog, line))
const PAGE = 'seq < :before ORDER BY seq DESC LIMIT :limit'
const LIST = query('audit.list', auditLog, selectFrom(auditLog, `WHERE ${PAGE}`))
const LIST_OF_SUBJECT = query(
  'audit.listOfSubject',
  auditLog,
  selectFrom(auditLog, `WHERE subject = :subject AND ${PAGE}`),
)

/** `result` is what the change returned; of a change outside of the store there is none. */
export function addAuditLine(entry: AuditEntry, result?: unknown): Asked<number> {
  return run(INSERT, encode(line, { ...entry, outcome: toAuditOutcome(result) }))
}

export const auditStore = defineStore<AuditStore>('audit', {
  list: read(function* ({ limit, before, subject }) {
    const page = { limit, before: before ?? Number.MAX_SAFE_INTEGER }
    return yield* subject === null ? all(LIST, page) : all(LIST_OF_SUBJECT, { ...page, subject })
  }),
  note: durable(
    function* (entry) {
      yield* addAuditLine(entry)
    },
    { isEssential: true },
  ),
})
