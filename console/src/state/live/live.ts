/**
 * What this page knows of the account's jobs while it changes: the book of jobs, the counts, how the connection stands. Frames are
 * gathered and shown at most ten times a second.
 */
import { batch, computed, effect, signal } from '@preact/signals'
import type { ApiError } from '../../api/client.ts'
import type { Counts, JobPage, JobStatus, Summary } from '../../api/summary.ts'
import { BUILD } from '../../base.ts'
import { setServerTime } from '../clock.ts'
import { loadSession, session } from '../session.ts'
import { applyToBook, type BookChange, EMPTY_BOOK, forget, movedOn } from './job-book.ts'
import { isWatched } from './presence.ts'
import type { SseFrame } from './read-sse.ts'
import { openSharedStream } from './shared-stream.ts'
import type { StreamState } from './stream.ts'

const PAINT_MS = 100
const POLL_MS = 10_000

const book = signal(EMPTY_BOOK)
export const counts = signal<Counts | null>(null)
export const streamState = signal<StreamState>('connecting')
/** By choice of the person: nothing on the screen changes by itself. */
export const isPaused = signal(false)
export const newBuild = signal<string | null>(null)
export const draining = signal(false)
/** Grows with every greeting: whoever shows a list takes a fresh snapshot then, so that there is never a gap. */
export const greetings = signal(0)
/** Grows while the stream is down, every ten seconds: lists ask again. */
export const polls = signal(0)

export type LiveWord = 'live' | 'paused' | 'reconnecting' | 'offline'

export const liveWord = computed<LiveWord>(() => {
  if (isPaused.value) return 'paused'
  if (streamState.value === 'live') return 'live'
  return navigator.onLine ? 'reconnecting' : 'offline'
})

export function jobOf(id: string): Summary | undefined {
  return book.value.jobs.get(id)
}

export const knownJobs = computed(() => book.value.jobs)

type Listener = (change: BookChange) => void
const listeners = new Set<Listener>()

/** Hears every change when it is shown. */
export function onJobChange(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let waiting: BookChange[] = []
let painter: ReturnType<typeof setTimeout> | undefined

function paint(): void {
  painter = undefined
  if (isPaused.value) return
  const changes = waiting
  waiting = []
  batch(() => {
    book.value = applyToBook(book.value, changes)
    for (const change of changes) for (const listener of listeners) listener(change)
  })
}

function enter(change: BookChange): void {
  waiting.push(change)
  if (painter === undefined) painter = setTimeout(paint, PAINT_MS)
}

/** What a question answered: shown at once. Older than what the stream brought: the newer stays. */
export function takeSnapshot(jobs: readonly Summary[]): void {
  book.value = applyToBook(book.value, [{ kind: 'snapshot', jobs, isComplete: false }])
}

/** Asks for all jobs of some states; those that have left these states unheard are forgotten. Gives whether there are more. */
export async function refreshStates(
  statuses: readonly JobStatus[],
  ask: () => Promise<JobPage>,
): Promise<{ readonly hasMore: boolean; readonly page: JobPage }> {
  const asked = book.value
  const page = await ask()
  setServerTime(page.now)
  const now = applyToBook(book.value, [{ kind: 'snapshot', jobs: page.jobs, isComplete: false }])
  const hasMore = page.next_cursor !== null
  book.value = hasMore ? now : forget(now, movedOn({ asked, now: book.value, statuses, answered: page.jobs }))
  return { hasMore, page }
}

export function setPaused(value: boolean): void {
  isPaused.value = value
  if (!value) paint()
}

/** Shown before the service said so; returns what takes it back. */
export function showStatus(id: string, status: JobStatus): () => void {
  const before = jobOf(id)
  if (before === undefined) return () => undefined
  const put = (job: Summary) => {
    book.value = applyToBook(book.value, [{ kind: 'job', job }])
  }
  put({ ...before, status })
  return () => {
    const now = jobOf(id)
    if (now?.status === status && now.version === before.version) put(before)
  }
}

function takeFrame({ event, data }: SseFrame): void {
  if (event === 'job') return enter({ kind: 'job', job: JSON.parse(data) as Summary })
  if (event === 'gone') return enter({ kind: 'gone', id: (JSON.parse(data) as { id: string }).id })
  if (event === 'counts') {
    if (!isPaused.value) counts.value = JSON.parse(data) as Counts
  } else if (event === 'hello') {
    const hello = JSON.parse(data) as { build: string | null; now: string; counts: Counts }
    setServerTime(hello.now)
    counts.value = hello.counts
    if (hello.build !== null && hello.build !== BUILD) newBuild.value = hello.build
    greetings.value++
  } else if (event === 'notice') {
    const { kind } = JSON.parse(data) as { kind: string }
    if (kind === 'drain') draining.value = true
  }
}

function takeState(state: StreamState, error: ApiError | null): void {
  streamState.value = state
  if (state === 'live') draining.value = false
  // The session may have ended: whoever asks again is shown the form.
  if (error?.status === 401) void loadSession()
}

/** Follows the account that is signed in, as long as somebody looks. */
export function startLive(): void {
  let account: string | null = null
  effect(() => {
    const id = session.value?.account?.id ?? null
    if (!isWatched.value || id === null || session.value?.signed_in !== true) return
    if (account !== id) {
      account = id
      book.value = EMPTY_BOOK
      counts.value = null
    }
    const close = openSharedStream({ account: id, onFrame: takeFrame, onState: takeState })
    return close
  })
  setInterval(() => {
    if (isWatched.value && streamState.value !== 'live' && session.value?.signed_in === true) polls.value++
  }, POLL_MS)
}
