/** The rows of the list at the present address: asked page by page, kept up by the stream, never moved under the pointer. */
import { batch, type Signal, signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { fits, type JobFilter } from '../../api/filter.ts'
import { listJobs } from '../../api/jobs.ts'
import { type Counts, isEnded, type Summary } from '../../api/summary.ts'
import { serverNow, setServerTime } from '../../state/clock.ts'
import type { BookChange } from '../../state/live/job-book.ts'
import {
  EMPTY_LIST,
  type JobList,
  showFresh,
  takeArrival,
  takeFirstPage,
  takeFirstPageAgain,
  takeGone,
  takeNextPage,
} from '../../state/live/job-list.ts'
import { greetings, jobOf, keepShown, onJobChange, polls, takeSnapshot } from '../../state/live/live.ts'
import { retryMs } from '../../state/live/stream-rules.ts'
import { useReloadOn } from '../../state/resource.ts'

const PAGE = 100
/** How often a filter that only the service can judge is asked again, at most. */
const DEEP_MS = 2000
/** How far down rows that had not ended are asked for again after a gap. */
const MAX_OPEN_PAGES = 10

export interface LiveList {
  readonly list: Signal<JobList>
  readonly counts: Signal<Counts | null>
  readonly error: Signal<ApiError | null>
  readonly isReady: Signal<boolean>
  /** Set by the table: whether new rows may stand on top at once. */
  readonly isAtTop: Signal<boolean>
  readonly isPointed: Signal<boolean>
  loadMore(): void
  refresh(): void
  showFresh(): void
}

interface Loader extends LiveList {
  open(): () => void
}

function createList(filter: JobFilter): Loader {
  const list = signal<JobList>(EMPTY_LIST)
  const counts = signal<Counts | null>(null)
  const error = signal<ApiError | null>(null)
  const isReady = signal(false)
  const isAtTop = signal(true)
  const isPointed = signal(false)
  const controller = new AbortController()
  const { signal: abort } = controller
  const retries = createRetries(error, abort)
  const { timers, failures, soon, failed } = retries
  const loadMore = createLoadMore({ filter, list, error, abort }, retries)
  const isSteady = () => !isAtTop.value || isPointed.value
  /** Questions for the first page overlap: an answer that is older than one already shown is dropped. */
  let asked = 0
  let shown = 0
  /** What was heard before the first page came. */
  const early: BookChange[] = []

  async function ask(): Promise<void> {
    const mine = ++asked
    try {
      const page = await listJobs(filter, { now: serverNow(), limit: PAGE, withCounts: true, signal: abort })
      failures.first = 0
      if (mine < shown) return
      shown = mine
      const wasReady = isReady.value
      const { jobs, next_cursor: cursor } = page
      batch(() => {
        setServerTime(page.now)
        takeSnapshot(jobs)
        list.value = wasReady
          ? takeFirstPageAgain(list.value, { jobs, cursor, isSteady: isSteady() })
          : takeFirstPage(jobs, cursor, filter.sort)
        counts.value = page.counts
        error.value = null
        isReady.value = true
        for (const change of early.splice(0)) take(change)
      })
      if (list.value.rows.length === 0) void loadMore()
      if (wasReady) await askOpen({ filter, list, take, abort }, jobs)
    } catch (thrown) {
      failed(thrown, 'first', ask)
    }
  }

  function take(change: BookChange): void {
    if (change.kind === 'gone') list.value = takeGone(list.value, change.id)
    if (change.kind !== 'job') return
    const job = jobOf(change.job.id) ?? change.job
    const verdict = fits(job, filter, serverNow())
    if (verdict !== 'unknown') list.value = takeArrival(list.value, { job, fits: verdict, isSteady: isSteady() })
    else if (!list.value.rows.includes(job.id)) soon('deep', DEEP_MS, ask)
  }

  function open(): () => void {
    void ask()
    const unhear = onJobChange((change) => {
      if (isReady.value) take(change)
      else early.push(change)
    })
    const unkeep = keepShown(() => new Set([...list.peek().rows, ...list.peek().fresh]))
    return () => {
      unhear()
      unkeep()
      controller.abort()
      for (const timer of timers.values()) clearTimeout(timer)
    }
  }

  return {
    ...{ list, counts, error, isReady, isAtTop, isPointed, open },
    loadMore: () => void loadMore(),
    refresh: () => void ask(),
    showFresh() {
      list.value = showFresh(list.value)
    },
  }
}

type Timed = 'first' | 'deep' | 'more'

function createRetries(error: Signal<ApiError | null>, abort: AbortSignal) {
  const timers = new Map<Timed, ReturnType<typeof setTimeout>>()
  const failures = { first: 0, more: 0 }

  /** One timer of a kind at a time. */
  function soon(kind: Timed, ms: number, deed: () => Promise<void>): void {
    if (timers.has(kind) || abort.aborted) return
    const run = () => {
      timers.delete(kind)
      void deed()
    }
    timers.set(kind, setTimeout(run, ms))
  }

  function failed(thrown: unknown, kind: 'first' | 'more', deed: () => Promise<void>): void {
    if (!(thrown instanceof ApiError) || abort.aborted) return
    error.value = thrown
    const isTemporary = thrown.status === null || thrown.status >= 500 || thrown.status === 429
    if (isTemporary) soon(kind, retryMs(thrown, failures[kind]++), deed)
  }

  return { timers, failures, soon, failed }
}

interface Shown extends Pick<Rows, 'filter' | 'list' | 'abort'> {
  readonly error: Signal<ApiError | null>
}

function createLoadMore(
  { filter, list, error, abort }: Shown,
  { timers, failures, soon, failed }: ReturnType<typeof createRetries>,
) {
  let isLoadingMore = false

  async function loadMore(): Promise<void> {
    const { cursor } = list.value
    if (cursor === null || isLoadingMore || timers.has('more')) return
    isLoadingMore = true
    try {
      const page = await listJobs(filter, { now: serverNow(), limit: PAGE, cursor, signal: abort })
      failures.more = 0
      batch(() => {
        error.value = null
        takeSnapshot(page.jobs)
        // Begun anew meanwhile: this page belongs to rows that are no longer here.
        if (list.value.cursor === cursor) list.value = takeNextPage(list.value, page.jobs, page.next_cursor)
      })
      // The service looks through so many jobs for a page; where few fit, a page may be empty and not the last.
      if (page.jobs.length === 0 && page.next_cursor !== null) soon('more', 0, loadMore)
    } catch (thrown) {
      failed(thrown, 'more', loadMore)
    } finally {
      isLoadingMore = false
    }
  }

  return loadMore
}

interface Rows {
  readonly filter: JobFilter
  readonly list: Signal<JobList>
  take(change: BookChange): void
  readonly abort: AbortSignal
}

/** Rows below the first page that had not ended when they were last heard of: what became of them, whatever state they are in. */
async function askOpen({ filter, list, take, abort }: Rows, first: readonly Summary[]): Promise<void> {
  const fresh = new Set(first.map(({ id }) => id))
  const open = new Set(list.value.rows.filter((id) => !fresh.has(id) && isOpen(id)))
  let cursor: string | null = null
  for (let page = 0; open.size > 0 && page < MAX_OPEN_PAGES; page++) {
    const answer = await listJobs({ ...filter, statuses: [] }, { now: serverNow(), limit: PAGE, cursor, signal: abort })
    batch(() => {
      takeSnapshot(answer.jobs)
      for (const job of answer.jobs) if (open.delete(job.id)) take({ kind: 'job', job })
    })
    cursor = answer.next_cursor
    if (cursor !== null) continue
    for (const id of open) list.value = takeGone(list.value, id)
    return
  }
}

function isOpen(id: string): boolean {
  const job = jobOf(id)
  return job !== undefined && !isEnded(job.status)
}

export function useJobList(filter: JobFilter, key: string): LiveList {
  const [current, setCurrent] = useState(() => ({ key, loader: createList(filter) }))
  let { loader } = current
  if (current.key !== key) {
    loader = createList(filter)
    setCurrent({ key, loader })
  }
  useEffect(() => loader.open(), [loader])
  useReloadOn(`${greetings.value} ${polls.value}`, loader.refresh)
  return loader
}
