/** The bus of a single process: whatever is published reaches every listener before `publish` returns. */
import type { Log } from '../../../lib/log.ts'
import type {
  CallMoved,
  DirectoryChanged,
  EventBus,
  JobChanged,
  JobLive,
  LiveTopic,
  Unsubscribe,
} from '../../domain/events/event-bus.ts'

interface LocalBusOptions {
  readonly log: Log
}

export function createLocalBus<Event>({ log }: LocalBusOptions): EventBus<Event> {
  const changed = createSubscriptions<JobChanged>('changed', log)
  const live = createLiveSubscriptions<Event>(log)
  const work = createSubscriptions<string | undefined>('work', log)
  const directory = createSubscriptions<DirectoryChanged>('directory', log)
  const call = createSubscriptions<CallMoved>('call', log)
  return {
    hasOthers: false,
    publishChanged: changed.publish,
    publishLive: live.publish,
    publishWork: (pool) => work.publish(pool),
    publishDirectory: directory.publish,
    publishCall: call.publish,
    onChanged: changed.subscribe,
    onLive: live.subscribe,
    onWork: (listener) => work.subscribe((pool) => listener(pool, false)),
    onDirectory: directory.subscribe,
    onCall: call.subscribe,
    // Within one process nothing is lost.
    onGap: () => () => {},
  }
}

// Who listens to what within this process. Publishing calls the listeners, in the order in which they subscribed, and does not wait
// for their promises. A listener that throws, or whose promise is rejected, affects neither the other listeners nor the publisher;
// its fault is logged here.

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
  /** Of a run in this process. */
  publish(notice: JobLive<Event>): void
  /** Of a run in another process, which told it at this uptime of this process. */
  publishRemote(notice: JobLive<Event>, toldAtMs: number): void
}

/** What a bus between processes does when somebody begins to listen to a topic. */
interface LiveWatching<Event> {
  /** The first listener of a topic came, or its last one left. */
  onWatched(topic: string): void
  onUnwatched(topic: string): void
  /** What other processes have sent about it before, in order. */
  past(topic: string): Iterable<JobLive<Event>>
  /** The uptime of this process. */
  now(): number
}

/** Live notices by topic: a notice without a listener costs two look-ups. */
export function createLiveSubscriptions<Event>(log: Log, watching?: LiveWatching<Event>): LiveSubscriptions<Event> {
  const own = createSubscriptions<JobLive<Event>>('live', log)
  const byKey = new Map<string, Subscriptions<ToldLive<Event>>>()

  function subscribe(topic: LiveTopic, listener: Listener<JobLive<Event>>): Unsubscribe {
    if (topic === 'published_here') return own.subscribe(listener)
    const key = 'jobId' in topic ? jobKey(topic.jobId) : accountKey(topic.accountId)
    const known = byKey.get(key)
    const subscriptions = known ?? createSubscriptions<ToldLive<Event>>('live', log)
    byKey.set(key, subscriptions)
    tellPast(key, listener)
    const sinceMs = watching?.now() ?? 0
    const stop = subscriptions.subscribe(({ notice, toldAtMs }) =>
      listener(toldAtMs < sinceMs ? { ...notice, isPast: true } : notice),
    )
    if (known === undefined) watching?.onWatched(key)
    return () => {
      stop()
      if (subscriptions.size > 0 || byKey.get(key) !== subscriptions) return
      byKey.delete(key)
      watching?.onUnwatched(key)
    }
  }

  function tellPast(key: string, listener: Listener<JobLive<Event>>): void {
    const newcomer = createSubscriptions<JobLive<Event>>('live', log)
    newcomer.subscribe(listener)
    for (const notice of watching?.past(key) ?? []) newcomer.publish({ ...notice, isPast: true })
  }

  function tell(told: ToldLive<Event>): void {
    byKey.get(accountKey(told.notice.accountId))?.publish(told)
    byKey.get(jobKey(told.notice.jobId))?.publish(told)
  }

  return {
    subscribe,
    publish(notice) {
      own.publish(notice)
      tell({ notice, toldAtMs: Number.POSITIVE_INFINITY })
    },
    publishRemote: (notice, toldAtMs) => tell({ notice, toldAtMs }),
  }
}

interface ToldLive<Event> {
  readonly notice: JobLive<Event>
  readonly toldAtMs: number
}

export function jobKey(jobId: string): string {
  return `j ${jobId}`
}

export function accountKey(accountId: string): string {
  return `a ${accountId}`
}

/** null: the topic is an account. */
export function jobIdOf(topic: string): string | null {
  return topic.startsWith('j ') ? topic.slice(2) : null
}
