/** The rules of a live stream: its frames, what the service greets with, and how long to wait before it is asked again. Pure. */
import type { Counts } from '../../api/summary.ts'

/** The text of an event stream, cut into its frames, whatever pieces it arrives in. */
export interface SseFrame {
  readonly event: string
  readonly data: string
}

/** Gives the frames that each piece completes. A frame that grows beyond the bound is dropped: nothing of ours is that long. */
const MAX_FRAME = 4 * 1024 * 1024

export function createSseReader(): (piece: string) => readonly SseFrame[] {
  let rest = ''
  let event = 'message'
  let data: string[] = []
  return (piece) => {
    const frames: SseFrame[] = []
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_FRAME) rest = ''
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (data.length > 0) frames.push({ event, data: data.join('\n') })
        event = 'message'
        data = []
      } else if (line.startsWith('event:')) event = line.slice(6).trim()
      else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
    }
    return frames
  }
}

/**
 * How long to wait before the next try: 1, 2, 4 … 30 s, each with up to a fifth more or less, so that a thousand pages do not come back
 * at once. A service that is not there is not helped by patience: it is asked at least every few seconds, so that a page is right soon
 * after its return.
 */
const FIRST_MS = 1000
const MOST_MS = 30_000
const MOST_AWAY_MS = 3000
const JITTER = 0.2
/** What a proxy says while the service behind it is away. */
const AWAY: readonly (number | null)[] = [null, 502, 503, 504]

interface Failure {
  /** null: no answer came. */
  readonly status: number | null
  readonly retryAfterSeconds: number | null
}

/** `error`: null: a connection broke off. */
export function retryMs(error: Failure | null, failures: number, random = Math.random()): number {
  const most = AWAY.includes(error?.status ?? null) ? MOST_AWAY_MS : MOST_MS
  const plain = Math.min(most, FIRST_MS * 2 ** Math.min(failures, 10))
  const waitMs = Math.round(plain * (1 + (random * 2 - 1) * JITTER))
  return Math.max(waitMs, (error?.retryAfterSeconds ?? 0) * 1000)
}

/** What the service would greet with now: its first word, with the counts and the build that it told since. */
export interface Greeting {
  readonly build: string | null
  readonly now: string
  readonly counts: Counts
}

export function renewGreeting(greeting: Greeting | null, { event, data }: SseFrame): Greeting | null {
  if (event === 'hello') return JSON.parse(data) as Greeting
  if (greeting === null) return null
  if (event === 'counts') return { ...greeting, counts: JSON.parse(data) as Counts }
  if (event !== 'notice') return greeting
  const { kind, build } = JSON.parse(data) as { readonly kind: string; readonly build?: string }
  return kind === 'build' && build !== undefined ? { ...greeting, build } : greeting
}
