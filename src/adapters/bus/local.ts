/**
 * The bus of a single process: whoever publishes calls the listeners, in the order in which they subscribed. A listener that
 * throws disturbs neither the other listeners nor the publisher; its fault is logged, because nobody else can report it.
 */
import type { Log } from '../../../lib/log.ts'
import type { EventBus, JobChanged, JobLive, Unsubscribe } from '../../domain/events/event-bus.ts'

interface LocalBusOptions {
  readonly log: Log
}

interface Topic<Notice> {
  publish(notice: Notice): void
  subscribe(listener: (notice: Notice) => void): Unsubscribe
}

function createTopic<Notice>(name: string, log: Log): Topic<Notice> {
  // Each subscription is an object of its own: a function that subscribed twice is called twice, and is unsubscribed one at a time.
  const subscriptions = new Set<{ readonly listener: (notice: Notice) => void }>()
  return {
    publish(notice) {
      for (const { listener } of subscriptions) {
        try {
          listener(notice)
        } catch (error) {
          log.error({ err: error, topic: name }, 'a listener of the bus threw')
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

export function createLocalBus<Event>({ log }: LocalBusOptions): EventBus<Event> {
  const changed = createTopic<JobChanged>('changed', log)
  const live = createTopic<JobLive<Event>>('live', log)
  const work = createTopic<string | undefined>('work', log)
  return {
    publishChanged: changed.publish,
    publishLive: live.publish,
    publishWork: (pool) => work.publish(pool),
    onChanged: changed.subscribe,
    onLive: live.subscribe,
    onWork: work.subscribe,
  }
}
