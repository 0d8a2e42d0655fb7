/**
 * One watched thing and everybody who watches it. However many there are, a notice costs one read, and whatever is noticed
 * while a read is under way causes another read after it. Snapshots reach a watcher in the order of their versions.
 */
import type { Log } from '../../../lib/log.ts'
import { uptimeMs } from '../../../lib/uptime.ts'

export interface WatchSource<Key, Snapshot> {
  /** null when there is nothing (any more). Must not answer from anything older than `version`. */
  read(key: Key, version: number): Promise<Snapshot | null>
  topicOf(key: Key): string
  versionOf(snapshot: Snapshot): number
  /** Whether a watcher who knows `before` learns something from `after`, both being of the same version. */
  isNews(before: Snapshot, after: Snapshot): boolean
  /** How long a snapshot may stand without a notice before it is read again; null: for good. */
  freshMs(snapshot: Snapshot): number | null
}

export interface Watcher<Snapshot> {
  onSnapshot(snapshot: Snapshot): void
  /** It is gone; nothing follows. */
  onGone(): void
}

export interface Watch<Snapshot> {
  readonly snapshot: Snapshot
  stop(): void
}

export interface Topic<Snapshot> {
  notice(version: number): void
  join(watcher: Watcher<Snapshot>): Promise<Watch<Snapshot> | null>
  refresh(): Promise<void>
  isDue(nowMs: number): boolean
}

export interface TopicOptions {
  readonly log: Log
  readonly retryMs: number
  /** Nobody watches any more, or there is nothing left to watch. */
  onEmpty(): void
}

interface Seat<Snapshot> {
  readonly watcher: Watcher<Snapshot>
  /** What this watcher has been given; null until its caller has the first snapshot. */
  given: Snapshot | null
}

export function createTopic<Key, Snapshot>(
  source: WatchSource<Key, Snapshot>,
  key: Key,
  { log, retryMs, onEmpty }: TopicOptions,
): Topic<Snapshot> {
  const seats = new Set<Seat<Snapshot>>()
  let snapshot: Snapshot | null = null
  /** The highest version that was noticed. */
  let wanted = 0
  let reading: Promise<void> | null = null
  let dueAtMs = Number.POSITIVE_INFINITY

  function isBehind(): boolean {
    return snapshot === null || source.versionOf(snapshot) < wanted
  }

  function refresh(): Promise<void> {
    if (reading !== null) return reading
    const loop = Promise.withResolvers<void>()
    reading = loop.promise
    readUntilCurrent().then(loop.resolve, loop.reject)
    return loop.promise
  }

  async function readUntilCurrent(): Promise<void> {
    try {
      let asked: number
      do {
        asked = wanted
        const found = await source.read(key, asked)
        if (found === null) return lose()
        accept(found)
        // A source that answers with less than it was asked for is left alone until the next notice or re-read.
      } while (wanted > asked && isBehind())
    } catch (error) {
      dueAtMs = uptimeMs() + retryMs
      throw error
    } finally {
      // In the same breath as the last look at `wanted`: a notice that comes next must find the way free.
      reading = null
    }
  }

  function accept(found: Snapshot): void {
    const freshMs = source.freshMs(found)
    dueAtMs = freshMs === null ? Number.POSITIVE_INFINITY : uptimeMs() + freshMs
    if (snapshot !== null && source.versionOf(found) < source.versionOf(snapshot)) return
    snapshot = found
    for (const seat of seats) give(seat, found)
  }

  function give(seat: Seat<Snapshot>, found: Snapshot): void {
    if (seat.given === null) return
    const step = source.versionOf(found) - source.versionOf(seat.given)
    if (step < 0 || (step === 0 && !source.isNews(seat.given, found))) return
    seat.given = found
    guard(() => seat.watcher.onSnapshot(found))
  }

  function lose(): void {
    snapshot = null
    const told = [...seats]
    seats.clear()
    onEmpty()
    for (const seat of told) if (seat.given !== null) guard(() => seat.watcher.onGone())
  }

  /** One watcher that throws must not cost its neighbours the news. */
  function guard(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      log.error({ err: error }, 'a watcher threw')
    }
  }

  function leave(seat: Seat<Snapshot>): void {
    if (seats.delete(seat) && seats.size === 0) onEmpty()
  }

  async function join(watcher: Watcher<Snapshot>): Promise<Watch<Snapshot> | null> {
    const seat: Seat<Snapshot> = { watcher, given: null }
    // Seated before the first read: what is noticed from here on is not missed.
    seats.add(seat)
    try {
      if (isBehind()) await refresh()
    } catch (error) {
      leave(seat)
      throw error
    }
    const first = snapshot
    if (first === null) return null
    // The caller runs on before anything newer may reach its watcher: otherwise it could write the older one last.
    const begin = setImmediate(() => {
      seat.given = first
      if (!seats.has(seat)) guard(() => watcher.onGone())
      else if (snapshot !== null) give(seat, snapshot)
    })
    const stop = () => {
      clearImmediate(begin)
      leave(seat)
    }
    return { snapshot: first, stop }
  }

  return {
    notice(version) {
      if (version <= wanted) return
      wanted = version
      if (!isBehind()) return
      refresh().catch((error) => log.warn({ err: error }, 'a watched record could not be read; it is tried again'))
    },
    join,
    refresh,
    isDue: (nowMs) => dueAtMs <= nowMs && reading === null,
  }
}
