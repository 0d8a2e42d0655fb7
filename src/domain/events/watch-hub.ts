/**
 * Watching things that have versions: the snapshot first, then every newer one, never a gap. A topic is registered before
 * its first read, so no notice can fall between the two. Notices are best effort, so a topic is also re-read from time to
 * time, a bounded number at once. Where snapshots come from is the source's business.
 */
import type { Log } from '../../../lib/log.ts'
import { uptimeMs } from '../../../lib/waiting/uptime.ts'
import { createTopic, logFailedRead, type Topic, type Watch, type Watcher, type WatchSource } from './watch-topic.ts'

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
