/**
 * Answers of the service by their key, kept while and after they are shown: a page that is opened again shows what it had, dated, and
 * asks anew behind it. What fails for lack of an answer is asked again by itself; data that was there stays.
 */
import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { isWatched } from './live/presence.ts'
import { retryMs } from './live/stream-rules.ts'
import { createQuestion } from './question.ts'

export interface Resource<Value> {
  readonly data: Signal<Value | null>
  readonly error: Signal<ApiError | null>
  /** When the data came. */
  readonly at: Signal<number | null>
  /** Asks again, also while an answer is on its way, which may be older; what is shown stays until the answer is there. */
  readonly reload: () => void
}

type Load<Value> = (signal: AbortSignal) => Promise<Value>

interface Entry<Value> extends Resource<Value> {
  users: number
  begin(load: Load<Value>): void
  end(): void
}

const MAX_ENTRIES = 100
const entries = new Map<string, Entry<unknown>>()

function createEntry<Value>(): Entry<Value> {
  const data = signal<Value | null>(null)
  const error = signal<ApiError | null>(null)
  const at = signal<number | null>(null)
  let load: Load<Value> | null = null
  let retry: ReturnType<typeof setTimeout> | undefined
  let failures = 0

  const question = createQuestion(async (abort) => {
    clearTimeout(retry)
    if (load === null) return
    try {
      const value = await load(abort)
      if (abort.aborted) return
      failures = 0
      data.value = value
      error.value = null
      at.value = Date.now()
    } catch (thrown) {
      if (abort.aborted) return
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
      const isTemporary = thrown.status === null || thrown.status >= 500 || thrown.status === 429
      if (isTemporary) retry = setTimeout(question.ask, retryMs(thrown, failures++))
    }
  })

  return {
    data,
    error,
    at,
    users: 0,
    reload: question.askAgain,
    begin(next) {
      load = next
      question.ask()
    },
    end() {
      clearTimeout(retry)
      question.giveUp()
      load = null
    },
  }
}

function entryOf<Value>(key: string): Entry<Value> {
  const found = entries.get(key) as Entry<Value> | undefined
  const entry = found ?? createEntry<Value>()
  entries.delete(key)
  entries.set(key, entry as Entry<unknown>)
  for (const [old, { users }] of entries) {
    if (entries.size <= MAX_ENTRIES) break
    if (users === 0) entries.delete(old)
  }
  return entry
}

/** `key` names what is asked for; another key is another question. null: nothing is asked yet. */
export function useResource<Value>(key: string | null, load: Load<Value>): Resource<Value> {
  const entry = useMemo(() => (key === null ? createEntry<Value>() : entryOf<Value>(key)), [key])
  useEffect(() => {
    if (key === null) return
    entry.users++
    if (entry.users === 1) entry.begin(load)
    return () => {
      entry.users--
      if (entry.users === 0) entry.end()
    }
  }, [entry])
  return entry
}

const EVERY_MS = 4000

/** A question that is asked again every few seconds while somebody looks: nothing tells of these changes yet. */
export function usePolled<Value>(key: string, load: (signal: AbortSignal) => Promise<Value>): Resource<Value> {
  const resource = useResource(key, load)
  useEffect(() => {
    const timer = setInterval(() => {
      if (isWatched.value) resource.reload()
    }, EVERY_MS)
    return () => clearInterval(timer)
  }, [resource])
  return resource
}

/** Calls `reload` whenever `mark` changes, also before the first answer is there: it may be older than the change. */
export function useReloadOn(mark: string | number | undefined, reload: () => void): void {
  const seen = useRef(mark)
  useEffect(() => {
    if (seen.current === mark) return
    seen.current = mark
    reload()
  }, [mark])
}
