/** Reading until there is no more, or until something has happened. */
import { AtelierError, type CallOptions, type Client, sleep } from './core.ts'

type List<I, A> = (client: Client, input: I, options?: CallOptions) => Promise<A>

interface PageMarks {
  readonly next_cursor?: string | null
  readonly nextCursor?: string | null
  readonly next?: string | number | null
}

/**
 * Every page of a list, one request after the other: `for await (const { jobs } of pages(listJobs, client, {}))`. `by` names what
 * the operation takes for the next page where that is not `cursor`: `pages(listAccounts, client, {}, { by: 'after' })`.
 */
export async function* pages<I extends object, A extends PageMarks>(
  list: List<I, A>,
  client: Client,
  input: NoInfer<I>,
  { by = 'cursor', ...options }: CallOptions & { readonly by?: 'cursor' | 'after' | 'before' } = {},
): AsyncGenerator<A, void, undefined> {
  for (let at: I | null = input; at !== null; ) {
    const page: A = await list(client, at, options)
    yield page
    const next = page.next_cursor ?? page.nextCursor ?? page.next ?? null
    at = next === null || next === '' ? null : { ...input, [by]: next }
  }
}

export interface WaitOptions {
  /** Between two questions; default: one second. */
  readonly everyMs?: number
  /** Default: ten minutes. What is waited for goes on all the same. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Asks until the answer is what was waited for: `waitUntil(() => getBatch(client, { id }), (batch) => batch.is_done)`. */
export async function waitUntil<T>(
  read: () => Promise<T>,
  isDone: (value: T) => boolean,
  { everyMs = 1000, timeoutMs = 600_000, signal }: WaitOptions = {},
): Promise<T> {
  const endsAt = Date.now() + timeoutMs
  for (;;) {
    signal?.throwIfAborted()
    const value = await read()
    if (isDone(value)) return value
    const leftMs = endsAt - Date.now()
    if (leftMs <= 0)
      throw new AtelierError(`it did not come to that within ${timeoutMs} ms`, { code: 'timeout', details: value })
    await sleep(Math.min(everyMs, leftMs), signal)
  }
}
