/**
 * A bus between processes. What this process publishes reaches its own listeners at once. Others hear what everybody must know
 * through the medium, which may lose, merge or repeat notices but keeps the order of those that one process sent; and, over links,
 * everything about the jobs that somebody there watches, in order and with its pictures.
 */
import type { Log } from '../../../lib/log.ts'
import { uptimeMs } from '../../../lib/waiting/uptime.ts'
import type { CallMoved, DirectoryChanged, EventBus, JobChanged } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import { decodeNotice, type EncodedNotice, encodeNotice, type Notice } from '../../domain/events/notice-lines.ts'
import type { LiveLinks } from './live/live-links.ts'
import { LiveLog } from './live/live-log.ts'
import { type JobNotice, ToldNotice } from './live/told-notice.ts'
import { MoveOrder } from './move-order.ts'
import { accountKey, createLiveSubscriptions, createSubscriptions, jobKey } from './subscriptions.ts'

export interface Medium {
  /** Never throws and never waits: what cannot be sent is lost. */
  send(encoded: EncodedNotice, notice: Notice): void
  /** Called once, before anything is sent. */
  connect(receiver: MediumReceiver): void
}

interface MediumReceiver {
  /** Notices of other processes only, never those that this one sent. */
  onNotice(notice: EncodedNotice, from: string): void
  /** Something may have been lost since the last notice. */
  onGap(): void
}

interface WireBusOptions {
  readonly medium: Medium
  readonly links: LiveLinks
  readonly log: Log
  /** For tests: in place of the uptime of this process. */
  readonly now?: () => number
}

export function createWireBus(options: WireBusOptions): EventBus<LiveEvent> & Disposable {
  const { medium, links, log, now = uptimeMs } = options
  const changed = createSubscriptions<JobChanged>('changed', log)
  const work = createSubscriptions<{ readonly pool: string | undefined; readonly isRemote: boolean }>('work', log)
  const directory = createSubscriptions<DirectoryChanged>('directory', log)
  const call = createSubscriptions<CallMoved>('call', log)
  const gap = createSubscriptions<undefined>('gap', log)
  /** What other processes have sent: later listeners need it too. */
  const heard = new LiveLog()
  const live = createLiveSubscriptions<LiveEvent>(log, {
    onWatched: (topic) => links.watch(topic),
    onUnwatched(topic) {
      links.unwatch(topic)
      // Without a listener its later events would not arrive here.
      heard.forget(topic, (each) => links.isWatched(each))
    },
    *past(topic) {
      for (const { notice } of heard.of(topic)) if (notice.kind === 'live') yield notice.notice
    },
    now,
  })
  const moves = new MoveOrder({ deliver: (notice) => changed.publish({ ...notice, isRemote: true }) })
  let heardCount = 0

  function tellOthers(told: Notice): void {
    if (told.kind === 'changed' || told.kind === 'live') links.publish(told)
    // Only those who watch the job need these, and they have a link.
    if (told.kind === 'live' || (told.kind === 'changed' && told.notice.isDetail === true)) return
    const encoded = encodeNotice(told)
    if (encoded !== null) medium.send(encoded, told)
    else log.debug({ kind: told.kind }, 'a notice could not be sent to other processes')
  }

  function hearMedium(told: Notice, from: string): void {
    if (told.kind === 'changed') {
      const { jobId, accountId, move } = told.notice
      if (move === 'taken') links.noteHolder(jobId, from, accountKey(accountId))
      const isOpen = () => links.hears(from, [jobKey(jobId), accountKey(accountId)])
      moves.byMedium(told.notice, isOpen() ? { isOpen, isArriving: () => links.isReceivingFrom(from) } : null)
    } else if (told.kind === 'work') work.publish({ pool: told.pool, isRemote: true })
    else if (told.kind === 'directory') directory.publish(told.notice)
    else if (told.kind === 'call') call.publish(told.notice)
  }

  function hearLink(told: JobNotice, ageMs: number): void {
    if (told.kind === 'changed') {
      moves.byLink(told.notice, ageMs)
      return
    }
    const toldAtMs = now() - ageMs
    heard.add(new ToldNotice(++heardCount, toldAtMs, told))
    live.publishRemote(told.notice, toldAtMs)
  }

  medium.connect({
    onNotice(encoded, from) {
      const told = decodeNotice(encoded)
      if (told === null) log.debug({ line: encoded.line.slice(0, 40) }, 'a notice of another process is not understood')
      else hearMedium(told, from)
    },
    onGap() {
      links.doubt()
      gap.publish(undefined)
    },
  })
  links.connect({ onTold: hearLink, onLost: () => moves.release() })

  return {
    hasOthers: true,
    publishChanged(notice) {
      changed.publish(notice)
      tellOthers({ kind: 'changed', notice })
    },
    publishLive(notice) {
      live.publish(notice)
      tellOthers({ kind: 'live', notice })
    },
    publishWork(pool) {
      work.publish({ pool, isRemote: false })
      tellOthers({ kind: 'work', pool })
    },
    publishDirectory(notice) {
      directory.publish(notice)
      tellOthers({ kind: 'directory', notice })
    },
    publishCall(notice) {
      call.publish(notice)
      tellOthers({ kind: 'call', notice })
    },
    onChanged: changed.subscribe,
    onLive: live.subscribe,
    onWork: (listener) => work.subscribe(({ pool, isRemote }) => listener(pool, isRemote)),
    onDirectory: directory.subscribe,
    onCall: call.subscribe,
    onGap: (listener) => gap.subscribe(() => listener()),
    [Symbol.dispose]: () => moves[Symbol.dispose](),
  }
}
