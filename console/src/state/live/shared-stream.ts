/**
 * One stream of the account's changes for all tabs of a browser that are looked at. The tab that holds the lock reads it and tells the
 * others; when it goes, the next one takes over. Where a browser has no locks (plain http beyond this machine), each tab reads its own.
 */
import type { ApiError } from '../../api/client.ts'
import { BASE } from '../../routes.ts'
import { serverNow } from '../clock.ts'
import { openStream, type StreamState } from './stream.ts'
import { type Greeting, renewGreeting, type SseFrame } from './stream-rules.ts'

interface SharedOptions {
  readonly account: string
  readonly onFrame: (frame: SseFrame) => void
  readonly onState: (state: StreamState, error: ApiError | null) => void
}

type Told =
  | { readonly kind: 'frame'; readonly frame: SseFrame }
  | { readonly kind: 'state'; readonly state: StreamState }
  | { readonly kind: 'ask' }

const PATH = '/console/v1/events'

export function openSharedStream({ account, onFrame, onState }: SharedOptions): () => void {
  if (!('locks' in navigator) || navigator.locks === undefined) return openStream({ path: PATH, onFrame, onState })
  const name = `atelier-live ${BASE} ${account}`
  const channel = new BroadcastChannel(name)
  const leaving = new AbortController()
  let isReader = false
  let state: StreamState = 'connecting'
  let greeting: Greeting | null = null
  const tell = (told: Told) => channel.postMessage(told)

  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if (data.kind === 'ask') {
      if (!isReader) return
      tell({ kind: 'state', state })
      // The greeting may be hours old: whoever comes later gets it as it would be now.
      if (greeting !== null) {
        const data = JSON.stringify({ ...greeting, now: new Date(serverNow()).toISOString() })
        tell({ kind: 'frame', frame: { event: 'hello', data } })
      }
    } else if (!isReader) {
      if (data.kind === 'frame') onFrame(data.frame)
      else onState(data.state, null)
    }
  }

  const read = () =>
    new Promise<void>((resolve) => {
      isReader = true
      const close = openStream({
        path: PATH,
        onFrame: (frame) => {
          greeting = renewGreeting(greeting, frame)
          onFrame(frame)
          tell({ kind: 'frame', frame })
        },
        onState: (next, error) => {
          state = next
          onState(next, error)
          tell({ kind: 'state', state: next })
        },
      })
      leaving.signal.addEventListener('abort', () => {
        close()
        resolve()
      })
    })

  navigator.locks.request(name, { signal: leaving.signal }, read).catch(() => undefined)
  tell({ kind: 'ask' })
  return () => {
    leaving.abort()
    channel.close()
  }
}

const SLOTS = 3

/**
 * A place for one more stream of this browser, so that requests always find a connection free; null: all are taken, ask again by
 * polling. Returns what gives it back.
 */
export async function takeStreamSlot(): Promise<(() => void) | null> {
  if (!('locks' in navigator) || navigator.locks === undefined) return () => undefined
  for (let slot = 0; slot < SLOTS; slot++) {
    const release = await tryLock(`atelier-slot ${slot}`)
    if (release !== null) return release
  }
  return null
}

function tryLock(name: string): Promise<(() => void) | null> {
  return new Promise((settle) => {
    void navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null) {
        settle(null)
        return undefined
      }
      return new Promise<void>((release) => settle(() => release()))
    })
  })
}
