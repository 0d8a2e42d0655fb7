/**
 * A stream of events that keeps itself open: it comes back within seconds, gives a connection up that was silent for 45 s, and
 * says how it stands. What the frames mean is its user's business.
 */
import { ApiError, request } from '../../api/client.ts'
import { createSseReader, retryMs, type SseFrame } from './stream-rules.ts'

/** The service sends a sign of life every 15 s. */
const SILENCE_MS = 45_000
/** A stream that the service ended in order is asked for again at once, to learn why: a credential may have been taken back. */
const AT_ONCE_EVERY_MS = 5000

export type StreamState = 'connecting' | 'live' | 'reconnecting' | 'ended'

export interface StreamOptions {
  readonly path: string
  readonly onFrame: (frame: SseFrame) => void
  readonly onState: (state: StreamState, error: ApiError | null) => void
  /** The service ended the stream on its own: true when there is nothing more to come. */
  readonly isOver?: () => boolean
}

/** Returns what closes it. */
export function openStream({ path, onFrame, onState, isOver = () => false }: StreamOptions): () => void {
  const whole = new AbortController()
  void follow()
  return () => whole.abort()

  async function follow(): Promise<void> {
    let failures = 0
    let askedAtOnce = Number.NEGATIVE_INFINITY
    onState('connecting', null)
    while (!whole.signal.aborted) {
      let error: ApiError | null = null
      let isInOrder = false
      try {
        await readOnce(() => {
          failures = 0
          onState('live', null)
        })
        isInOrder = true
      } catch (thrown) {
        error = thrown instanceof ApiError ? thrown : null
      }
      if (whole.signal.aborted) return
      const isRefused = error?.status != null && error.status >= 400 && error.status < 500 && error.status !== 429
      if (isOver() || isRefused) return onState('ended', error)
      onState('reconnecting', error)
      if (isInOrder && performance.now() - askedAtOnce > AT_ONCE_EVERY_MS) {
        askedAtOnce = performance.now()
        continue
      }
      await pause(retryMs(error, failures++), whole.signal)
    }
  }

  async function readOnce(onOpen: () => void): Promise<void> {
    const one = new AbortController()
    const stop = () => one.abort()
    whole.signal.addEventListener('abort', stop)
    let silence = setTimeout(stop, SILENCE_MS)
    try {
      const response = await request(path, { headers: { Accept: 'text/event-stream' }, signal: one.signal })
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
      if (reader === undefined) return
      onOpen()
      const readFrames = createSseReader()
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(silence)
        silence = setTimeout(stop, SILENCE_MS)
        for (const frame of readFrames(part.value)) onFrame(frame)
      }
    } finally {
      clearTimeout(silence)
      whole.signal.removeEventListener('abort', stop)
      one.abort()
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
    // Coming back online is worth a try at once.
    window.addEventListener('online', () => resolve(), { once: true, signal })
  })
}
