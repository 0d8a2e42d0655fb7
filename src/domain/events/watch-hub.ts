/**
 * Watching things that have versions: the snapshot first, then every newer one, never a gap. A topic is registered before
 * its first read, so no notice can fall between the two. Notices are best effort, so a topic is also re-read from time to
 * time, a bounded number at once. Where snapshots come from is the source's business.
 */

import { uptimeMs } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { isStoreAway } from '../errors.ts'

interface WatchHub<Key, Snapshot> extends Disposable {
  notice(key: Key, version: number): void
  /** Notices may have been lost: every topic is read again soon. */
  noticeAll(): void
  /** null when there is nothing to watch. The first `onSnapshot` comes after the caller has had `snapshot`. */
  watch(key: Key, watcher: Watcher<Snapshot>): Promise<Watch<Snapshot> | null>
  topicCount(): number
}

interface WatchHubOptions {
  readonly log: Log
  /** How often due re-reads are looked for. */
  readonly tickMs?: number
  /** Re-reads without a notice that run at the same time: thousands of waiting topics must not flood the store. */
  readonly maxRefreshes?: number
}

export function createWatchHub<Key, Snapshot>(
  source: WatchSource<Key, Snapshot>,
  { log, tickMs = 250, maxRefreshes = 32 }: WatchHubOptions,
): WatchHub<Key, Snapshot> {
  const topics = new Map<string, Topic<Snapshot>>()
  let ticker: NodeJS.Timeout | null = null
  let isRefreshing = false

  function topicFor(key: Key): Topic<Snapshot> {
    const name = source.topicOf(key)
    const known = topics.get(name)
    if (known !== undefined) return known
    const topic = createTopic(source, key, {
      log,
      retryMs: tickMs,
      onEmpty() {
        if (topics.get(name) === topic) topics.delete(name)
        if (topics.size === 0) stopTicking()
      },
    })
    topics.set(name, topic)
    ticker ??= setInterval(refreshDue, tickMs)
    return topic
  }

  function stopTicking(): void {
    if (ticker !== null) clearInterval(ticker)
    ticker = null
  }

  async function refreshDue(): Promise<void> {
    if (isRefreshing) return
    isRefreshing = true
    const nowMs = uptimeMs()
    // All readers draw from one iterator, so each due topic is read once.
    const due = [...topics.values()].filter((topic) => topic.isDue(nowMs)).values()
    const readers = Array.from({ length: maxRefreshes }, async () => {
      for (const topic of due) {
        await topic.refresh().catch((error) => logFailedRead(log, error))
      }
    })
    await Promise.all(readers)
    isRefreshing = false
  }

  return {
    notice(key, version) {
      topics.get(source.topicOf(key))?.notice(version)
    },
    noticeAll() {
      for (const topic of topics.values()) topic.expire()
    },
    watch: (key, watcher) => topicFor(key).join(watcher),
    topicCount: () => topics.size,
    [Symbol.dispose]() {
      stopTicking()
      topics.clear()
    },
  }
}

export interface WatchSource<Key, Snapshot> {
  /** null when there is nothing (any more). Must not answer from anything older than `version`. */
  read(key: Key, version: number): Promise<Snapshot | null>
  topicOf(key: Key): string
  versionOf(snapshot: Snapshot): number
  /** Whether a watcher who knows `before` learns something from `after`, both being of the same version. */
  isNews(before: Snapshot, after: Snapshot): boolean
  /** How long a snapshot is good without a notice before it is read again; null: for ever. */
  freshMs(snapshot: Snapshot): number | null
  /**
   * Nothing follows this snapshot. It counts even when a higher version was seen: a crash of the store may undo versions that were
   * never promised, such as those of progress, and the end then comes with a lower one.
   */
  isFinal(snapshot: Snapshot): boolean
}

interface Watcher<Snapshot> {
  onSnapshot(snapshot: Snapshot): void
  /** It is gone; nothing follows. */
  onGone(): void
}

interface Watch<Snapshot> {
  readonly snapshot: Snapshot
  stop(): void
}

interface Topic<Snapshot> {
  notice(version: number): void
  join(watcher: Watcher<Snapshot>): Promise<Watch<Snapshot> | null>
  refresh(): Promise<void>
  isDue(nowMs: number): boolean
  /** It is due now, unless it never changes any more. */
  expire(): void
}

interface TopicOptions {
  readonly log: Log
  readonly retryMs: number
  /** Nobody watches any more, or there is nothing left to watch. */
  onEmpty(): void
}

interface Subscriber<Snapshot> {
  readonly watcher: Watcher<Snapshot>
  /** What this watcher has been given; null until its caller has the first snapshot. */
  given: Snapshot | null
}

/**
 * One watched thing and everybody who watches it. However many there are, a notice costs one read, and whatever is noticed
 * while a read is under way causes another read after it. Snapshots reach a watcher in the order of their versions.
 */
function createTopic<Key, Snapshot>(
  source: WatchSource<Key, Snapshot>,
  key: Key,
  { log, retryMs, onEmpty }: TopicOptions,
): Topic<Snapshot> {
  const subscribers = new Set<Subscriber<Snapshot>>()
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
        // A source that answers with an older version than it was asked for is not asked again before the next notice or re-read.
      } while (wanted > asked && isBehind())
    } catch (error) {
      dueAtMs = uptimeMs() + retryMs
      throw error
    } finally {
      // In the same turn as the last look at `wanted`: the next notice must be able to start a read.
      reading = null
    }
  }

  function isOlder(found: Snapshot, known: Snapshot): boolean {
    if (source.isFinal(known)) return source.versionOf(found) < source.versionOf(known) || !source.isFinal(found)
    return source.versionOf(found) < source.versionOf(known) && !source.isFinal(found)
  }

  /** An end is news even with a version that was seen: a crash may have undone that one, and the end has taken its number. */
  function isNews(given: Snapshot, found: Snapshot): boolean {
    if (source.versionOf(found) !== source.versionOf(given)) return true
    return source.isFinal(found) !== source.isFinal(given) || source.isNews(given, found)
  }

  function accept(found: Snapshot): void {
    const freshMs = source.freshMs(found)
    dueAtMs = freshMs === null ? Number.POSITIVE_INFINITY : uptimeMs() + freshMs
    if (snapshot !== null && isOlder(found, snapshot)) return
    snapshot = found
    for (const subscriber of subscribers) give(subscriber, found)
  }

  function give(subscriber: Subscriber<Snapshot>, found: Snapshot): void {
    if (subscriber.given === null) return
    if (isOlder(found, subscriber.given) || !isNews(subscriber.given, found)) return
    subscriber.given = found
    guard(() => subscriber.watcher.onSnapshot(found))
  }

  function lose(): void {
    snapshot = null
    const told = [...subscribers]
    subscribers.clear()
    onEmpty()
    for (const subscriber of told) if (subscriber.given !== null) guard(() => subscriber.watcher.onGone())
  }

  /** A watcher that throws must not keep the others from the news. */
  function guard(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      log.error({ err: error }, 'a watcher threw')
    }
  }

  function leave(subscriber: Subscriber<Snapshot>): void {
    if (subscribers.delete(subscriber) && subscribers.size === 0) onEmpty()
  }

  async function join(watcher: Watcher<Snapshot>): Promise<Watch<Snapshot> | null> {
    const subscriber: Subscriber<Snapshot> = { watcher, given: null }
    // Before the first read, so that no notice from here on is missed.
    subscribers.add(subscriber)
    try {
      if (isBehind()) await refresh()
    } catch (error) {
      leave(subscriber)
      throw error
    }
    const first = snapshot
    if (first === null) return null
    // The caller gets this snapshot before its watcher gets a newer one: otherwise it could write the older one last.
    const begin = setImmediate(() => {
      subscriber.given = first
      if (!subscribers.has(subscriber)) guard(() => watcher.onGone())
      else if (snapshot !== null) give(subscriber, snapshot)
    })
    const stop = () => {
      clearImmediate(begin)
      leave(subscriber)
    }
    return { snapshot: first, stop }
  }

  return {
    notice(version) {
      if (version <= wanted) return
      wanted = version
      if (!isBehind()) return
      refresh().catch((error) => logFailedRead(log, error))
    },
    join,
    refresh,
    isDue: (nowMs) => dueAtMs <= nowMs && reading === null,
    expire() {
      if (dueAtMs !== Number.POSITIVE_INFINITY) dueAtMs = 0
    },
  }
}

/** Thousands of topics are read again and again during an outage, which the store itself reports once. */
function logFailedRead(log: Log, error: unknown): void {
  const level = isStoreAway(error) ? 'debug' : 'warn'
  log[level]({ err: error }, 'a watched record could not be read; it is tried again')
}
