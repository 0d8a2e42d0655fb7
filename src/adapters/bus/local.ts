/** The bus of a single process: whatever is published reaches every listener before `publish` returns. */
import type { Log } from '../../../lib/log.ts'
import type { CallMoved, DirectoryChanged, EventBus, JobChanged } from '../../domain/events/event-bus.ts'
import { createLiveSubscriptions, createSubscriptions } from './subscriptions.ts'

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
