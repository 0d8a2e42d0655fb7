/** Pages of jobs in short, as a query asks for them: one account's, or, for the operator, those of all. */
import type { Clock } from '../../../../lib/clock.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type {
  JobSummary,
  SummaryQuery,
  SummaryScope,
  SummaryStore,
} from '../../../domain/jobs/summaries/summary-store.ts'
import { createTimeCursors } from '../cursor.ts'
import { type Fields, nameFilter, readFilter, readLimit, refuseUnknown } from './job-filters.ts'

interface PageDeps {
  readonly summaries: Pick<SummaryStore, 'search' | 'count'>
  readonly cursorSecret: Uint8Array
  readonly clock: Clock
}

interface PageTerms {
  readonly toView: (summary: JobSummary) => object
  /** What a query may have beside filters and the words of a page. */
  readonly others?: readonly string[]
}

/** Throws invalid_request and invalid_cursor. */
export function createReadPage({ summaries, cursorSecret, clock }: PageDeps) {
  const cursors = createTimeCursors(cursorSecret)
  return async (scope: SummaryScope, fields: Fields, { toView, others = [] }: PageTerms): Promise<object> => {
    refuseUnknown(fields, ['sort', 'cursor', 'limit', 'counts', ...others])
    if ((fields.get('counts') ?? '1') !== '1')
      throw new ServiceError('invalid_request', 'counts must be 1, or be left out')
    const filter = readFilter(fields)
    const order = readOrder(fields.get('sort'))
    const name = JSON.stringify([scope, order, nameFilter(filter)])
    const cursor = fields.get('cursor') ?? null
    const now = clock.now()
    const after = cursor === null ? null : cursors.read(cursor, name)
    const [page, counts] = await Promise.all([
      summaries.search(scope, { filter, order, limit: readLimit(fields), after, now }),
      fields.get('counts') === '1' ? summaries.count(scope, filter, now) : null,
    ])
    return {
      jobs: page.summaries.map(toView),
      next_cursor: page.next === null ? null : cursors.encode(page.next, name),
      counts,
      now: now.toISOString(),
    }
  }
}

function readOrder(text = 'newest'): SummaryQuery['order'] {
  if (text === 'newest' || text === 'oldest') return text
  throw new ServiceError('invalid_request', 'sort must be newest or oldest')
}
