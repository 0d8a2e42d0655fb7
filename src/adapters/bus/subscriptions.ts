/**
 * Who listens to what within this process. Whoever publishes calls the listeners, in the order in which they subscribed. A
 * listener that throws, or whose promise is rejected, disturbs neither the other listeners nor the publisher; its fault is
 * logged, because nobody else can report it. Nobody waits for a listener.
 */
import type { Log } from '../../../lib/log.ts'
import type { EventBus, JobLive, LiveTopic, Unsubscribe } from '../../domain/events/event-bus.ts'

type Listener<Notice> = (notice: Notice) => void

interface Subscriptions<Notice> {
  readonly size: number
  publish(notice: Notice): void
  subscribe(listener: Listener<Notice>): Unsubscribe
}

export function createSubscriptions<Notice>(name: string, log: Log): Subscriptions<Notice> {
  // Each subscription is an object of its own: a function that subscribed twice is called twice, and is unsubscribed one at a time.
  const subscriptions = new Set<{ readonly listener: Listener<Notice> }>()
  const report = (error: unknown) => log.error({ err: error, topic: name }, 'a listener of the bus failed')
  return {
    get size() {
      return subscriptions.size
    },
    publish(notice) {
      for (const { listener } of subscriptions) {
        try {
          const answer: unknown = listener(notice)
          if (answer instanceof Promise) answer.catch(report)
        } catch (error) {
          report(error)
        }
      }
    },
    subscribe(listener) {
      const subscription = { listener }
      subscriptions.add(subscription)
      return () => {
        subscriptions.delete(subscription)
      }
    },
  }
}

interface LiveSubscriptions<Event> {
  readonly subscribe: EventBus<Event>['onLive']
  /** `isOwn`: this process published it. */
  publish(notice: JobLive<Event>, isOwn: boolean): void
}

/** Live notices by topic: what nobody here listens to costs two look-ups. */
export function createLiveSubscriptions<Event>(log: Log): LiveSubscriptions<Event> {
  const own = createSubscriptions<JobLive<Event>>('live', log)
  const byKey = new Map<string, Subscriptions<JobLive<Event>>>()

  function subscribe(topic: LiveTopic, listener: Listener<JobLive<Event>>): Unsubscribe {
    if (topic === 'published_here') return own.subscribe(listener)
    const key = 'jobId' in topic ? jobKey(topic.jobId) : accountKey(topic.accountId)
    const subscriptions = byKey.get(key) ?? createSubscriptions<JobLive<Event>>('live', log)
    byKey.set(key, subscriptions)
    const stop = subscriptions.subscribe(listener)
    return () => {
      stop()
      if (subscriptions.size === 0 && byKey.get(key) === subscriptions) byKey.delete(key)
    }
  }

  return {
    subscribe,
    publish(notice, isOwn) {
      if (isOwn) own.publish(notice)
      byKey.get(accountKey(notice.accountId))?.publish(notice)
      byKey.get(jobKey(notice.jobId))?.publish(notice)
    },
  }
}

function jobKey(jobId: string): string {
  return `j ${jobId}`
}

function accountKey(accountId: string): string {
  return `a ${accountId}`
}
