/**
 * What this page knows of the account's jobs while it changes: the book of jobs, the counts, how the connection stands. Frames are
 * gathered and shown at most ten times a second.
 */
import { batch, computed, effect, signal } from '@preact/signals'
import type { ApiError } from '../../api/client.ts'
import type { Counts, JobPage, JobStatus, Summary } from '../../api/summary.ts'
import { BUILD } from '../../routes.ts'
import { setServerTime } from '../clock.ts'
import { loadSession, session } from '../session.ts'
import {
  addWaiting,
  applyToBook,
  type BookChange,
  EMPTY_BOOK,
  forget,
  movedOn,
  type WaitingChanges,
} from './job-book.ts'
import { isWatched } from './presence.ts'
import { openSharedStream } from './shared-stream.ts'
import type { StreamState } from './stream.ts'
import type { SseFrame } from './stream-rules.ts'

const PAINT_MS = 100
const POLL_MS = 10_000

const book = signal(EMPTY_BOOK)
export const counts = signal<Counts | null>(null)
const streamState = signal<StreamState>('connecting')
/** By choice of the person: nothing on the screen changes by itself. */
export const isPaused = signal(false)
export const newBuild = signal<string | null>(null)
export const draining = signal(false)
/** Grows with every greeting: whoever shows a list takes a fresh snapshot then, so that there is never a gap. */
export const greetings = signal(0)
/** Grows when engines came, went or changed their state: whoever shows them asks again. */
export const engineNews = signal(0)
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

/** As it is known now: whoever asks is not drawn again when it changes. */
export function peekJob(id: string): Summary | undefined {
  return book.peek().jobs.get(id)
}

/** Removed, as far as this page has heard. A job that is merely not known here may well exist. */
export function isGone(id: string): boolean {
  return book.value.gone.has(id)
}

const shownRows = new Set<() => ReadonlySet<string>>()

/** The rows of a list that is on the screen keep their jobs. Returns what ends it. */
export function keepShown(rows: () => ReadonlySet<string>): () => void {
  shownRows.add(rows)
  return () => shownRows.delete(rows)
}

function change(changes: readonly BookChange[]): void {
  let lists: readonly ReadonlySet<string>[] | null = null
  const isShown = (id: string) => {
    lists ??= [...shownRows].map((rows) => rows())
    return lists.some((rows) => rows.has(id))
  }
  book.value = applyToBook(book.value, changes, isShown)
}

export const knownJobs = computed(() => book.value.jobs)

type Listener = (heard: BookChange) => void
const listeners = new Set<Listener>()

/** Hears every change when it is shown. */
export function onJobChange(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let waiting: WaitingChanges = new Map()
/** More came during a pause than is kept: lists ask again when it ends. */
let isOverrun = false
/** Told during a pause, and shown when it ends. */
let waitingCounts: Counts | null = null
let hasEngineNews = false
let painter: ReturnType<typeof setTimeout> | undefined
let paintedAt = Number.NEGATIVE_INFINITY

function paint(): void {
  painter = undefined
  paintedAt = performance.now()
  if (isPaused.value) return
  const changes = [...waiting.values()]
  waiting = new Map()
  batch(() => {
    change(changes)
    for (const heard of changes) for (const listener of listeners) listener(heard)
    if (isOverrun) greetings.value++
    isOverrun = false
    if (waitingCounts !== null) counts.value = waitingCounts
    waitingCounts = null
    if (hasEngineNews) engineNews.value++
    hasEngineNews = false
  })
}

function enter(heard: Parameters<typeof addWaiting>[1]): void {
  if (!addWaiting(waiting, heard)) isOverrun = true
  // The first after a quiet time is shown at once, together with what came in the same breath.
  if (painter === undefined) painter = setTimeout(paint, Math.max(0, paintedAt + PAINT_MS - performance.now()))
}

/** What a question answered: shown at once. Older than what the stream brought: the newer stays. */
export function takeSnapshot(jobs: readonly Summary[]): void {
  change([{ kind: 'snapshot', jobs }])
}

/** Asks for the jobs of some states; those that have left these states unheard are forgotten. */
export async function refreshStates(
  statuses: readonly JobStatus[],
  order: 'newest' | 'oldest',
  ask: () => Promise<JobPage>,
): Promise<JobPage> {
  const asked = book.value
  const page = await ask()
  setServerTime(page.now)
  const more = page.next_cursor === null ? null : order
  const left = movedOn({ asked, now: book.value, statuses, answered: page.jobs, more })
  batch(() => {
    takeSnapshot(page.jobs)
    book.value = forget(book.value, left)
  })
  return page
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
    change([{ kind: 'job', job }])
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
    const next = JSON.parse(data) as Counts
    if (isPaused.value) waitingCounts = next
    else counts.value = next
  } else if (event === 'hello') {
    const hello = JSON.parse(data) as { build: string | null; now: string; counts: Counts }
    setServerTime(hello.now)
    counts.value = hello.counts
    waitingCounts = null
    takeBuild(hello.build)
    greetings.value++
  } else if (event === 'engine') {
    if (isPaused.value) hasEngineNews = true
    else engineNews.value++
  } else if (event === 'notice') {
    const notice = JSON.parse(data) as { kind: string; build?: string | null }
    if (notice.kind === 'drain') draining.value = true
    else if (notice.kind === 'build') takeBuild(notice.build ?? null)
  }
}

function takeBuild(build: string | null): void {
  if (build !== null && build !== BUILD) newBuild.value = build
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
  // By itself, so that the session asked for again, as a sign of life, does not open the stream anew.
  const followed = computed(() => (session.value?.signed_in === true ? (session.value.account?.id ?? null) : null))
  effect(() => {
    const id = followed.value
    if (!isWatched.value || id === null) return
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
