import type { FastifyInstance } from 'fastify'
import type { AuditStore } from '../../../domain/accounts/audit.ts'
import { ADMIN_PATH, send } from '../admin-operation.ts'
import { readBefore, readLimit, readParameters } from '../page-query.ts'

export function listAudit(app: FastifyInstance, { audit }: { readonly audit: AuditStore }): void {
  app.get(`${ADMIN_PATH}/audit`, async (request, reply) => {
    const parameters = readParameters(request, ['limit', 'before', 'subject'])
    const [limit, before, subject] = [readLimit(parameters), readBefore(parameters), parameters.get('subject') ?? null]
    const found = await audit.list({ limit: limit + 1, before, subject })
    const page = found.slice(0, limit)
    const next = found.length > limit ? (page.at(-1)?.seq ?? null) : null
    return send(reply, 200, { records: page.map((record) => ({ ...record, at: record.at.toISOString() })), next })
  })
}
