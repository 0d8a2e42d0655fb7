/**
 * The rows of one list: which jobs, in which order. A row never moves: what no longer fits the filter stays where it is, greyed, and
 * what is new waits aside until it is asked for, unless the list stands at its top and nobody points at it.
 */
import type { Summary } from '../../api/summary.ts'

export interface JobList {
  readonly rows: readonly string[]
  /** New jobs that wait behind the pill, newest first. */
  readonly fresh: readonly string[]
  /** Rows that no longer fit the filter, or are gone. */
  readonly stale: ReadonlySet<string>
  readonly cursor: string | null
}

export const EMPTY_LIST: JobList = { rows: [], fresh: [], stale: new Set(), cursor: null }

export function takeFirstPage(jobs: readonly Summary[], cursor: string | null): JobList {
  return { rows: jobs.map(({ id }) => id), fresh: [], stale: new Set(), cursor }
}

export function takeNextPage(list: JobList, jobs: readonly Summary[], cursor: string | null): JobList {
  const known = new Set([...list.rows, ...list.fresh])
  return { ...list, rows: [...list.rows, ...jobs.map(({ id }) => id).filter((id) => !known.has(id))], cursor }
}

/**
 * The first page asked again, after a time without news. Rows stay in place; those of the page that are not among them are new.
 * `isSteady`: nothing may be inserted above what is on the screen.
 */
export function takeFirstPageAgain(list: JobList, jobs: readonly Summary[], isSteady: boolean): JobList {
  const known = new Set(list.rows)
  const added = jobs.map(({ id }) => id).filter((id) => !known.has(id))
  const fits = new Set(jobs.map(({ id }) => id))
  const stale = new Set([...list.stale].filter((id) => !fits.has(id)))
  if (isSteady) return { ...list, fresh: unique([...added, ...list.fresh.filter((id) => !known.has(id))]), stale }
  const rows = unique([...added, ...list.fresh, ...list.rows])
  return { ...list, rows, fresh: [], stale }
}

export interface Arrival {
  readonly id: string
  readonly fits: 'yes' | 'no'
  readonly isSteady: boolean
  /** Oldest first: what is new stands at the end, below everything that was loaded. */
  readonly isAppended: boolean
}

export function takeArrival(list: JobList, { id, fits, isSteady, isAppended }: Arrival): JobList {
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
  if (isAppended) return list.cursor === null ? { ...list, rows: [...list.rows, id] } : list
  if (list.fresh.includes(id)) return list
  return isSteady ? { ...list, fresh: [id, ...list.fresh] } : { ...list, rows: [id, ...list.rows] }
}

export function takeGone(list: JobList, id: string): JobList {
  if (list.fresh.includes(id)) return { ...list, fresh: list.fresh.filter((other) => other !== id) }
  if (!list.rows.includes(id) || list.stale.has(id)) return list
  return { ...list, stale: new Set([...list.stale, id]) }
}

export function showFresh(list: JobList): JobList {
  return list.fresh.length === 0 ? list : { ...list, rows: unique([...list.fresh, ...list.rows]), fresh: [] }
}

function unique(ids: readonly string[]): readonly string[] {
  return [...new Set(ids)]
}
