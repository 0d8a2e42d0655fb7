/**
 * Every job that this page has heard of, at its newest version. Frames may come late, twice or never: an older version never replaces
 * a newer one, what is gone stays gone, and a snapshot is the truth for the jobs it names. So any order and any loss of frames ends in
 * the snapshot.
 */
import type { JobStatus, Summary } from '../../api/summary.ts'

export interface JobBook {
  readonly jobs: ReadonlyMap<string, Summary>
  /** Ids never come back; the list of them is bounded. */
  readonly gone: ReadonlySet<string>
}

const MAX_JOBS = 5000
const MAX_GONE = 1000

export const EMPTY_BOOK: JobBook = { jobs: new Map(), gone: new Set() }

export type BookChange =
  | { readonly kind: 'job'; readonly job: Summary }
  | { readonly kind: 'gone'; readonly id: string }
  /** The jobs that one question answered. */
  | { readonly kind: 'snapshot'; readonly jobs: readonly Summary[] }

/** `isShown`: rows on some list, which keep their job whatever the bound says. */
export function applyToBook(
  book: JobBook,
  changes: readonly BookChange[],
  isShown: (id: string) => boolean = () => false,
): JobBook {
  if (changes.length === 0) return book
  const jobs = new Map(book.jobs)
  const gone = new Set(book.gone)
  for (const change of changes) {
    if (change.kind === 'job') take(jobs, gone, change.job)
    else if (change.kind === 'gone') {
      jobs.delete(change.id)
      gone.add(change.id)
    } else for (const job of change.jobs) take(jobs, gone, job)
  }
  trim(jobs, MAX_JOBS, isShown)
  trim(gone, MAX_GONE)
  return { jobs, gone }
}

/**
 * Jobs that were thought to be in one of these states when a question for all of them was asked, and are not in its answer: they have
 * moved on unheard. What the stream changed since the question is left alone. `more`: the answer is a first page in this order, so
 * what lies behind its last job may still be there.
 */
export function movedOn(options: {
  readonly asked: JobBook
  readonly now: JobBook
  readonly statuses: readonly JobStatus[]
  readonly answered: readonly Summary[]
  readonly more?: 'newest' | 'oldest' | null
}): readonly string[] {
  const { asked, now, statuses, answered, more = null } = options
  const named = new Set(answered.map(({ id }) => id))
  const last = answered.at(-1)
  const isCovered = (job: Summary) =>
    more === null ||
    (last !== undefined && (more === 'oldest' ? job.created_at < last.created_at : job.created_at > last.created_at))
  return [...asked.jobs.values()]
    .filter((job) => {
      const isSame = now.jobs.get(job.id)?.version === job.version
      return statuses.includes(job.status) && !named.has(job.id) && isSame && isCovered(job)
    })
    .map(({ id }) => id)
}

/** Leaves the book without a word about whether they still exist. */
export function forget(book: JobBook, ids: readonly string[]): JobBook {
  if (ids.length === 0) return book
  const jobs = new Map(book.jobs)
  for (const id of ids) jobs.delete(id)
  return { ...book, jobs }
}

function take(jobs: Map<string, Summary>, gone: ReadonlySet<string>, job: Summary): void {
  if (gone.has(job.id)) return
  const known = jobs.get(job.id)
  if (known !== undefined && known.version > job.version) return
  // What changed last stands last, so that the bound drops what was quiet longest.
  jobs.delete(job.id)
  jobs.set(job.id, job)
}

function trim(
  kept: { readonly size: number; keys(): Iterable<string>; delete(key: string): boolean },
  most: number,
  isShown: (key: string) => boolean = () => false,
) {
  let excess = kept.size - most
  if (excess <= 0) return
  for (const key of kept.keys()) {
    if (excess <= 0) break
    if (isShown(key)) continue
    kept.delete(key)
    excess--
  }
}

/** Changes that wait to be shown, one for each job: its newest, and that it is gone stays. */
export type WaitingChanges = Map<string, Exclude<BookChange, { kind: 'snapshot' }>>

/** Gives whether there was room. A page that is paused for a day must not hold a day of news. */
export function addWaiting(waiting: WaitingChanges, change: Exclude<BookChange, { kind: 'snapshot' }>): boolean {
  const id = change.kind === 'gone' ? change.id : change.job.id
  const known = waiting.get(id)
  if (known === undefined && waiting.size >= MAX_JOBS) return false
  const isOlder =
    known !== undefined && (known.kind === 'gone' || (change.kind === 'job' && known.job.version > change.job.version))
  if (!isOlder) waiting.set(id, change)
  return true
}
