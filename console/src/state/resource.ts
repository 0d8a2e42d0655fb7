/**
 * Answers of the service by their key, kept while and after they are shown: a page that is opened again shows what it had, dated, and
 * asks anew behind it. What fails for lack of an answer is asked again by itself; data that was there stays.
 */
import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { retryMs } from './live/backoff.ts'

export interface Resource<Value> {
  readonly data: Signal<Value | null>
  readonly error: Signal<ApiError | null>
  /** When the data came. */
  readonly at: Signal<number | null>
  /** Asks again; what is shown stays until the answer is there. */
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
  let controller: AbortController | null = null
  let retry: ReturnType<typeof setTimeout> | undefined
  let failures = 0

  async function ask(): Promise<void> {
    if (load === null) return
    clearTimeout(retry)
    controller?.abort()
    const mine = new AbortController()
    controller = mine
    try {
      const value = await load(mine.signal)
      if (mine.signal.aborted) return
      failures = 0
      data.value = value
      error.value = null
      at.value = Date.now()
    } catch (thrown) {
      if (mine.signal.aborted) return
      if (!(thrown instanceof ApiError)) throw thrown
      error.value = thrown
      const isTemporary = thrown.status === null || thrown.status >= 500 || thrown.status === 429
      if (isTemporary) retry = setTimeout(() => void ask(), retryMs(thrown, failures++))
    }
  }

  return {
    data,
    error,
    at,
    users: 0,
    reload: () => void ask(),
    begin(next) {
      load = next
      void ask()
    },
    end() {
      clearTimeout(retry)
      controller?.abort()
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
