/**
 * A bus over a medium that other processes share. What this process publishes reaches its own listeners at once, and others
 * through the medium; what the medium brings from others reaches the listeners here. The medium carries encoded notices and
 * may lose, merge or repeat them, but keeps the order of those that one process sent.
 */
import type { Log } from '../../../lib/log.ts'
import type { CallMoved, DirectoryChanged, EventBus, JobChanged } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import { decodeNotice, type EncodedNotice, encodeNotice, type Notice } from '../../domain/events/notice-lines.ts'
import { createLiveSubscriptions, createSubscriptions } from './subscriptions.ts'

export interface Medium {
  /** Whether the medium would carry it at all: what it drops need not be encoded. */
  carries(notice: Notice): boolean
  /** Never throws and never waits: what cannot be sent is lost. */
  send(encoded: EncodedNotice, notice: Notice): void
  /** Called once, before anything is sent. */
  connect(receiver: MediumReceiver): void
}

interface MediumReceiver {
  /** Notices of other processes only, never those that this one sent. */
  onNotice(notice: EncodedNotice): void
  /** Something may have been lost since the last notice. */
  onGap(): void
}

interface WireBusOptions {
  readonly medium: Medium
  readonly log: Log
}

export function createWireBus({ medium, log }: WireBusOptions): EventBus<LiveEvent> {
  const changed = createSubscriptions<JobChanged>('changed', log)
  const live = createLiveSubscriptions<LiveEvent>(log)
  const work = createSubscriptions<{ readonly pool: string | undefined; readonly isRemote: boolean }>('work', log)
  const directory = createSubscriptions<DirectoryChanged>('directory', log)
  const call = createSubscriptions<CallMoved>('call', log)
  const gap = createSubscriptions<undefined>('gap', log)

  function deliver(told: Notice, isOwn: boolean): void {
    if (told.kind === 'changed') changed.publish(isOwn ? told.notice : { ...told.notice, isRemote: true })
    else if (told.kind === 'live') live.publish(told.notice, isOwn)
    else if (told.kind === 'work') work.publish({ pool: told.pool, isRemote: !isOwn })
    else if (told.kind === 'directory') directory.publish(told.notice)
    else call.publish(told.notice)
  }

  function publish(told: Notice): void {
    deliver(told, true)
    if (!medium.carries(told)) return
    const encoded = encodeNotice(told)
    if (encoded !== null) medium.send(encoded, told)
    else log.debug({ kind: told.kind }, 'a notice cannot be told to other processes')
  }

  medium.connect({
    onNotice(encoded) {
      const told = decodeNotice(encoded)
      if (told === null) log.debug({ line: encoded.line.slice(0, 40) }, 'a notice of another process is not understood')
      else deliver(told, false)
    },
    onGap: () => gap.publish(undefined),
  })

  return {
    publishChanged: (notice) => publish({ kind: 'changed', notice }),
    publishLive: (notice) => publish({ kind: 'live', notice }),
    publishWork: (pool) => publish({ kind: 'work', pool }),
    publishDirectory: (notice) => publish({ kind: 'directory', notice }),
    publishCall: (notice) => publish({ kind: 'call', notice }),
    onChanged: changed.subscribe,
    onLive: live.subscribe,
    onWork: (listener) => work.subscribe(({ pool, isRemote }) => listener(pool, isRemote)),
    onDirectory: directory.subscribe,
    onCall: call.subscribe,
    onGap: (listener) => gap.subscribe(() => listener()),
  }
}
