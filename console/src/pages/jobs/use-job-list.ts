/** The rows of the list at the present address: asked page by page, kept up by the stream, never moved under the pointer. */
import { batch, type Signal, signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { fits, type JobFilter } from '../../api/filter.ts'
import { listJobs } from '../../api/jobs.ts'
import type { Counts } from '../../api/summary.ts'
import { serverNow, setServerTime } from '../../state/clock.ts'
import { backoffMs } from '../../state/live/backoff.ts'
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
import { greetings, jobOf, onJobChange, polls, takeSnapshot } from '../../state/live/live.ts'

const PAGE = 100
/** How often a filter that only the service can judge is asked again, at most. */
const DEEP_MS = 2000

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
  const isSteady = () => !isAtTop.value || isPointed.value
  let isLoadingMore = false
  let failures = 0
  let deep: ReturnType<typeof setTimeout> | undefined

  async function ask(): Promise<void> {
    try {
      const page = await listJobs(filter, {
        ...{ now: serverNow(), limit: PAGE, withCounts: true, signal: controller.signal },
      })
      failures = 0
      batch(() => {
        setServerTime(page.now)
        takeSnapshot(page.jobs)
        list.value = isReady.value
          ? takeFirstPageAgain(list.value, page.jobs, isSteady())
          : takeFirstPage(page.jobs, page.next_cursor)
        counts.value = page.counts
        error.value = null
        isReady.value = true
      })
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) return
      error.value = thrown
      const isTemporary = thrown.status === null || thrown.status >= 500 || thrown.status === 429
      if (isTemporary) deep = setTimeout(() => void ask(), backoffMs(failures++, Math.random()))
    }
  }

  function askSoon(): void {
    deep ??= setTimeout(() => {
      deep = undefined
      void ask()
    }, DEEP_MS)
  }

  async function loadMore(): Promise<void> {
    const { cursor } = list.value
    if (cursor === null || isLoadingMore) return
    isLoadingMore = true
    try {
      const page = await listJobs(filter, {
        ...{ now: serverNow(), limit: PAGE, cursor, signal: controller.signal },
      })
      batch(() => {
        takeSnapshot(page.jobs)
        list.value = takeNextPage(list.value, page.jobs, page.next_cursor)
      })
    } catch (thrown) {
      if (thrown instanceof ApiError) error.value = thrown
    } finally {
      isLoadingMore = false
    }
  }

  function open(): () => void {
    void ask()
    const unhear = onJobChange((change) => {
      if (!isReady.value) return
      if (change.kind === 'gone') list.value = takeGone(list.value, change.id)
      if (change.kind !== 'job') return
      const job = jobOf(change.job.id) ?? change.job
      const verdict = fits(job, filter, serverNow())
      if (verdict === 'unknown') {
        if (!list.value.rows.includes(job.id)) askSoon()
        return
      }
      list.value = takeArrival(list.value, {
        ...{ id: job.id, fits: verdict, isSteady: isSteady(), isAppended: filter.sort === 'oldest' },
      })
    })
    return () => {
      unhear()
      clearTimeout(deep)
      controller.abort()
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

export function useJobList(filter: JobFilter, key: string): LiveList {
  const [current, setCurrent] = useState(() => ({ key, loader: createList(filter) }))
  let { loader } = current
  if (current.key !== key) {
    loader = createList(filter)
    setCurrent({ key, loader })
  }
  useEffect(() => loader.open(), [loader])
  const mark = `${greetings.value} ${polls.value}`
  useEffect(() => {
    if (loader.isReady.peek()) loader.refresh()
  }, [mark])
  return loader
}
