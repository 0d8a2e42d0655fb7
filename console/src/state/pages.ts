/**
 * A long list that is asked for page by page as the eye reaches its end. A page may be empty and not the last one: the service looks
 * through so much and no more, so the next is asked for. What fails for lack of an answer is asked again by itself.
 */
import { batch, type Signal, signal } from '@preact/signals'
import { useCallback, useEffect, useMemo } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { retryMs } from './live/stream-rules.ts'

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

export interface Pages<Item> {
  readonly items: Signal<readonly Item[]>
  readonly error: Signal<ApiError | null>
  /** Whether the last page is there. */
  readonly isWhole: Signal<boolean>
  /** Asks for the next page, where there is one and none is under way. */
  readonly loadMore: () => void
  /** Begins anew; what is shown stays until the first page is there. */
  readonly reload: () => void
}

type Load<Item> = (cursor: string | null, signal: AbortSignal) => Promise<Page<Item>>

function createPages<Item>(load: Load<Item>) {
  const items = signal<readonly Item[]>([])
  const error = signal<ApiError | null>(null)
  const isWhole = signal(false)
  let cursor: string | null = null
  let failures = 0
  let isAsking = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let controller = new AbortController()

  async function ask(): Promise<void> {
    const { signal: abort } = controller
    if (isAsking || isWhole.peek() || abort.aborted) return
    isAsking = true
    clearTimeout(timer)
    const from = cursor
    try {
      const page = await load(from, abort)
      if (abort.aborted) return
      failures = 0
      cursor = page.next
      batch(() => {
        items.value = from === null ? page.items : [...items.value, ...page.items]
        isWhole.value = page.next === null
        error.value = null
      })
      if (page.items.length === 0 && page.next !== null) timer = setTimeout(() => void ask(), 0)
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || abort.aborted) return
      error.value = thrown
      const isTemporary = thrown.status === null || thrown.status >= 500 || thrown.status === 429
      if (isTemporary) timer = setTimeout(() => void ask(), retryMs(thrown, failures++))
    } finally {
      if (abort === controller.signal) isAsking = false
    }
  }

  function begin(): void {
    controller.abort()
    controller = new AbortController()
    isAsking = false
    cursor = null
    isWhole.value = false
    void ask()
  }

  return {
    ...{ items, error, isWhole, begin },
    more: () => void ask(),
    end() {
      clearTimeout(timer)
      controller.abort()
    },
  }
}

/** Another `key` is another list. */
export function usePages<Item>(key: string, load: Load<Item>): Pages<Item> {
  const pages = useMemo(() => createPages(load), [key])
  useEffect(() => {
    pages.begin()
    return pages.end
  }, [pages])
  const loadMore = useCallback(() => {
    if (pages.items.peek().length > 0) pages.more()
  }, [pages])
  return { items: pages.items, error: pages.error, isWhole: pages.isWhole, loadMore, reload: pages.begin }
}
