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
    const topic = new WatchedTopic(source, key, {
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
class WatchedTopic<Key, Snapshot> implements Topic<Snapshot> {
  readonly #source: WatchSource<Key, Snapshot>
  readonly #key: Key
  readonly #options: TopicOptions
  readonly #subscribers = new Set<Subscriber<Snapshot>>()
  #snapshot: Snapshot | null = null
  /** The highest version that was noticed. */
  #wanted = 0
  #reading: Promise<void> | null = null
  #dueAtMs = Number.POSITIVE_INFINITY

  constructor(source: WatchSource<Key, Snapshot>, key: Key, options: TopicOptions) {
    this.#source = source
    this.#key = key
    this.#options = options
  }

  #isBehind(): boolean {
    return this.#snapshot === null || this.#source.versionOf(this.#snapshot) < this.#wanted
  }

  refresh(): Promise<void> {
    if (this.#reading !== null) return this.#reading
    const loop = Promise.withResolvers<void>()
    this.#reading = loop.promise
    this.#readUntilCurrent().then(loop.resolve, loop.reject)
    return loop.promise
  }

  async #readUntilCurrent(): Promise<void> {
    try {
      let asked: number
      do {
        asked = this.#wanted
        const found = await this.#source.read(this.#key, asked)
        if (found === null) return this.#lose()
        this.#accept(found)
        // A source that answers with an older version than it was asked for is not asked again before the next notice or re-read.
      } while (this.#wanted > asked && this.#isBehind())
    } catch (error) {
      this.#dueAtMs = uptimeMs() + this.#options.retryMs
      throw error
    } finally {
      // In the same turn as the last look at `wanted`: the next notice must be able to start a read.
      this.#reading = null
    }
  }

  #isOlder(found: Snapshot, known: Snapshot): boolean {
    if (this.#source.isFinal(known))
      return this.#source.versionOf(found) < this.#source.versionOf(known) || !this.#source.isFinal(found)
    return this.#source.versionOf(found) < this.#source.versionOf(known) && !this.#source.isFinal(found)
  }

  /** An end is news even with a version that was seen: a crash may have undone that one, and the end has taken its number. */
  #isNews(given: Snapshot, found: Snapshot): boolean {
    if (this.#source.versionOf(found) !== this.#source.versionOf(given)) return true
    return this.#source.isFinal(found) !== this.#source.isFinal(given) || this.#source.isNews(given, found)
  }

  #accept(found: Snapshot): void {
    const freshMs = this.#source.freshMs(found)
    this.#dueAtMs = freshMs === null ? Number.POSITIVE_INFINITY : uptimeMs() + freshMs
    if (this.#snapshot !== null && this.#isOlder(found, this.#snapshot)) return
    this.#snapshot = found
    for (const subscriber of this.#subscribers) this.#give(subscriber, found)
  }

  #give(subscriber: Subscriber<Snapshot>, found: Snapshot): void {
    if (subscriber.given === null) return
    if (this.#isOlder(found, subscriber.given) || !this.#isNews(subscriber.given, found)) return
    subscriber.given = found
    this.#guard(() => subscriber.watcher.onSnapshot(found))
  }

  #lose(): void {
    this.#snapshot = null
    const told = [...this.#subscribers]
    this.#subscribers.clear()
    this.#options.onEmpty()
    for (const subscriber of told) if (subscriber.given !== null) this.#guard(() => subscriber.watcher.onGone())
  }

  /** A watcher that throws must not keep the others from the news. */
  #guard(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      this.#options.log.error({ err: error }, 'a watcher threw')
    }
  }

  #leave(subscriber: Subscriber<Snapshot>): void {
    if (this.#subscribers.delete(subscriber) && this.#subscribers.size === 0) this.#options.onEmpty()
  }

  async join(watcher: Watcher<Snapshot>): Promise<Watch<Snapshot> | null> {
    const subscriber: Subscriber<Snapshot> = { watcher, given: null }
    // Before the first read, so that no notice from here on is missed.
    this.#subscribers.add(subscriber)
    try {
      if (this.#isBehind()) await this.refresh()
    } catch (error) {
      this.#leave(subscriber)
      throw error
    }
    const first = this.#snapshot
    if (first === null) return null
    // The caller gets this snapshot before its watcher gets a newer one: otherwise it could write the older one last.
    const begin = setImmediate(() => {
      subscriber.given = first
      if (!this.#subscribers.has(subscriber)) this.#guard(() => watcher.onGone())
      else if (this.#snapshot !== null) this.#give(subscriber, this.#snapshot)
    })
    const stop = () => {
      clearImmediate(begin)
      this.#leave(subscriber)
    }
    return { snapshot: first, stop }
  }

  notice(version: number): void {
    if (version <= this.#wanted) return
    this.#wanted = version
    if (!this.#isBehind()) return
    this.refresh().catch((error) => logFailedRead(this.#options.log, error))
  }

  isDue(nowMs: number): boolean {
    return this.#dueAtMs <= nowMs && this.#reading === null
  }

  expire(): void {
    if (this.#dueAtMs !== Number.POSITIVE_INFINITY) this.#dueAtMs = 0
  }
}

/** Thousands of topics are read again and again during an outage, which the store itself reports once. */
function logFailedRead(log: Log, error: unknown): void {
  const level = isStoreAway(error) ? 'debug' : 'warn'
  log[level]({ err: error }, 'a watched record could not be read; it is tried again')
}
