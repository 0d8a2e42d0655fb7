/**
 * The rows of one list: which jobs, in which order. A row never moves: what no longer fits the filter stays where it is, greyed, and
 * what is new waits aside until it is asked for, unless the list stands at its top and nobody points at it. A job stands where the
 * service would put it, by when it was made: an old one that begins to fit is not a new one.
 */
import type { Summary } from '../../api/summary.ts'

export type ListOrder = 'newest' | 'oldest'

export interface JobList {
  readonly rows: readonly string[]
  /** Jobs that wait behind the pill, in the list's order. */
  readonly fresh: readonly string[]
  /** Rows that no longer fit the filter, or are gone. */
  readonly stale: ReadonlySet<string>
  readonly cursor: string | null
  readonly order: ListOrder
  /** The last row that a page brought: what lies behind it comes with the next page. null: no page brought any. */
  readonly edge: Place | null
  /** When the jobs here were made. Shared by all states of one list: that moment never changes. */
  readonly made: Map<string, string>
}

export type Place = Pick<Summary, 'id' | 'created_at'>

export const EMPTY_LIST: JobList = {
  ...{ rows: [], fresh: [], stale: new Set(), cursor: null, order: 'newest', edge: null, made: new Map() },
}

export function takeFirstPage(jobs: readonly Place[], cursor: string | null, order: ListOrder = 'newest'): JobList {
  const made = new Map(jobs.map((job) => [job.id, job.created_at]))
  return { ...EMPTY_LIST, rows: jobs.map(({ id }) => id), cursor, order, edge: jobs.at(-1) ?? null, made }
}

export function takeNextPage(list: JobList, jobs: readonly Place[], cursor: string | null): JobList {
  const known = new Set([...list.rows, ...list.fresh])
  note(list, jobs)
  const rows = merge(
    list,
    list.rows,
    jobs.map(({ id }) => id).filter((id) => !known.has(id)),
  )
  return { ...list, rows, cursor, edge: jobs.at(-1) ?? list.edge }
}

/**
 * The first page asked again, after a time without news. Rows stay in place; those of the page that are not among them are new.
 * Where more is new than a page holds, what is between the page and the rows is not known: the list begins again with the page.
 * `isSteady`: nothing may be inserted above what is on the screen.
 */
export function takeFirstPageAgain(
  list: JobList,
  {
    jobs,
    cursor,
    isSteady,
  }: { readonly jobs: readonly Place[]; readonly cursor: string | null; readonly isSteady: boolean },
): JobList {
  const last = jobs.at(-1)
  const [first] = list.rows
  if (first === undefined) return takeFirstPage(jobs, cursor, list.order)
  if (cursor !== null && last !== undefined && isBefore(list.order, last, placeOf(list, first)))
    return takeFirstPage(jobs, cursor, list.order)
  note(list, jobs)
  const fits = new Set(jobs.map(({ id }) => id))
  const known = new Set(list.rows)
  const added = [...fits].filter((id) => !known.has(id))
  const stale = new Set([...list.stale].filter((id) => !fits.has(id)))
  const fresh = merge(
    list,
    list.fresh,
    added.filter((id) => !list.fresh.includes(id)),
  )
  if (isSteady) return { ...list, fresh, stale }
  return { ...list, rows: merge(list, list.rows, fresh), fresh: [], stale }
}

export interface Arrival {
  readonly job: Place
  readonly fits: 'yes' | 'no'
  readonly isSteady: boolean
}

export function takeArrival(list: JobList, { job, fits, isSteady }: Arrival): JobList {
  const { id } = job
  if (list.rows.includes(id)) {
    if (list.stale.has(id) === (fits === 'no')) return list
    const stale = new Set(list.stale)
    if (fits === 'no') stale.add(id)
    else stale.delete(id)
    return { ...list, stale }
  }
  if (fits === 'no') {
    return list.fresh.includes(id) ? { ...list, fresh: list.fresh.filter((other) => other !== id) } : list
  }
  if (list.fresh.includes(id)) return list
  // A later page brings it.
  if (list.cursor !== null && list.edge !== null && isBefore(list.order, list.edge, job)) return list
  note(list, [job])
  const end = list.rows.at(-1)
  const isLast = end === undefined || isBefore(list.order, placeOf(list, end), job)
  // What stands at the end moves nothing.
  if (isSteady && !isLast) return { ...list, fresh: merge(list, list.fresh, [id]) }
  return { ...list, rows: merge(list, list.rows, [id]) }
}

export function takeGone(list: JobList, id: string): JobList {
  if (list.fresh.includes(id)) return { ...list, fresh: list.fresh.filter((other) => other !== id) }
  if (!list.rows.includes(id) || list.stale.has(id)) return list
  return { ...list, stale: new Set([...list.stale, id]) }
}

export function showFresh(list: JobList): JobList {
  return list.fresh.length === 0 ? list : { ...list, rows: merge(list, list.rows, list.fresh), fresh: [] }
}

/** Whether `a` stands above `b`. */
function isBefore(order: ListOrder, a: Place, b: Place): boolean {
  const isOlder = a.created_at === b.created_at ? a.id < b.id : a.created_at < b.created_at
  return order === 'oldest' ? isOlder : !isOlder && a.id !== b.id
}

function note({ made }: JobList, jobs: readonly Place[]): void {
  for (const job of jobs) made.set(job.id, job.created_at)
}

function placeOf({ made }: JobList, id: string): Place {
  return { id, created_at: made.get(id) ?? '' }
}

/** Puts each of `added` where it belongs; the others keep their order whatever it is. Both come in the list's order. */
function merge(list: JobList, rows: readonly string[], added: readonly string[]): readonly string[] {
  if (added.length === 0) return rows
  const merged: string[] = []
  let next = 0
  for (const row of rows) {
    const place = placeOf(list, row)
    while (next < added.length && isBefore(list.order, placeOf(list, added[next]), place)) merged.push(added[next++])
    merged.push(row)
  }
  return [...merged, ...added.slice(next)]
}
