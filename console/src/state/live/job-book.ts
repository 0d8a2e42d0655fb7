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
  /** All jobs that one question answered; `complete`: the question was for everything that exists. */
  | { readonly kind: 'snapshot'; readonly jobs: readonly Summary[]; readonly isComplete: boolean }

export function applyToBook(book: JobBook, changes: readonly BookChange[]): JobBook {
  if (changes.length === 0) return book
  const jobs = new Map(book.jobs)
  const gone = new Set(book.gone)
  for (const change of changes) {
    if (change.kind === 'job') take(jobs, gone, change.job)
    else if (change.kind === 'gone') {
      jobs.delete(change.id)
      gone.add(change.id)
    } else {
      if (change.isComplete) {
        const named = new Set(change.jobs.map(({ id }) => id))
        for (const id of jobs.keys()) if (!named.has(id)) jobs.delete(id)
      }
      for (const job of change.jobs) take(jobs, gone, job)
    }
  }
  trim(jobs, MAX_JOBS)
  trim(gone, MAX_GONE)
  return { jobs, gone }
}

/**
 * Jobs that were thought to be in one of these states when a question for all of them was asked, and are not in its answer: they have
 * moved on unheard. What the stream changed since the question is left alone.
 */
export function movedOn(options: {
  readonly asked: JobBook
  readonly now: JobBook
  readonly statuses: readonly JobStatus[]
  readonly answered: readonly Summary[]
}): readonly string[] {
  const { asked, now, statuses, answered } = options
  const named = new Set(answered.map(({ id }) => id))
  return [...asked.jobs.values()]
    .filter(({ id, status, version }) => {
      return statuses.includes(status) && !named.has(id) && now.jobs.get(id)?.version === version
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

function trim(kept: { readonly size: number; keys(): Iterable<string>; delete(key: string): boolean }, most: number) {
  let excess = kept.size - most
  for (const key of kept.keys()) {
    if (excess-- <= 0) break
    kept.delete(key)
  }
}
