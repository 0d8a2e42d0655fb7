/** Lists of jobs in short. */
import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import type { SummaryQuery } from '../../../domain/jobs/summaries/summary-store.ts'
import { createTimeCursors } from '../../kit/cursor.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { nameFilter, readFields, readFilter, readLimit, refuseUnknown } from '../job-filters.ts'
import { toSummaryView } from '../views/summary-view.ts'

export function listJobs(app: FastifyInstance, { callerOf, console: parts, clock }: ConsoleDeps): void {
  const cursors = createTimeCursors(parts.cursorSecret)
  app.get(`${CONSOLE_API}/jobs`, async (request, reply) => {
    const { accountId } = callerOf(request)
    const fields = readFields(request.raw.url ?? '')
    refuseUnknown(fields, ['sort', 'cursor', 'limit', 'counts'])
    const filter = readFilter(fields)
    const order = readOrder(fields.get('sort'))
    const name = JSON.stringify([accountId, order, nameFilter(filter)])
    const cursor = fields.get('cursor') ?? null
    const now = clock.now()
    const after = cursor === null ? null : cursors.read(cursor, name)
    const query: SummaryQuery = { filter, order, limit: readLimit(fields), after, now }
    const [page, counts] = await Promise.all([
      parts.summaries.search(accountId, query),
      fields.get('counts') === '1' ? parts.summaries.count(accountId, filter, now) : null,
    ])
    return sendJson(reply, 200, {
      jobs: page.summaries.map(toSummaryView),
      next_cursor: page.next === null ? null : cursors.encode(page.next, name),
      counts,
      now: now.toISOString(),
    })
  })
}

function readOrder(text = 'newest'): SummaryQuery['order'] {
  if (text === 'newest' || text === 'oldest') return text
  throw new ServiceError('invalid_request', 'sort must be newest or oldest')
}
