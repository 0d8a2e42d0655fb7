/**
 * A bus between processes. What this process publishes reaches its own listeners at once. Others hear what everybody must know
 * through the medium, which may lose, merge or repeat notices but keeps the order of those that one process sent; and, over links,
 * everything about the jobs that somebody there watches, in order and with its pictures.
 */
import { BoundedSet } from '../../../lib/bounded-map.ts'
import { uptimeMs } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { CallMoved, DirectoryChanged, EventBus, JobChanged, JobMove } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import { decodeNotice, type EncodedNotice, encodeNotice, type Notice } from '../../domain/events/notice-lines.ts'
import type { LiveLinks } from './live/live-links.ts'
import { LiveLog } from './live/live-log.ts'
import { type JobNotice, ToldNotice } from './live/told-notice.ts'
import { accountKey, createLiveSubscriptions, createSubscriptions, jobKey } from './local.ts'

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
  const topics = createTopics(log)
  const { changed, work, directory, call, gap } = topics
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
  const remote = new RemoteNotices({ topics, live, heard, links, now })

  function tellOthers(told: Notice): void {
    if (told.kind === 'changed' || told.kind === 'live') links.publish(told)
    // Only those who watch the job need these, and they have a link.
    if (told.kind === 'live' || (told.kind === 'changed' && told.notice.isDetail === true)) return
    const encoded = encodeNotice(told)
    if (encoded !== null) medium.send(encoded, told)
    else log.debug({ kind: told.kind }, 'a notice could not be sent to other processes')
  }

  medium.connect({
    onNotice(encoded, from) {
      const told = decodeNotice(encoded)
      if (told === null) log.debug({ line: encoded.line.slice(0, 40) }, 'a notice of another process is not understood')
      else remote.byMedium(told, from)
    },
    onGap() {
      links.doubt()
      gap.publish(undefined)
    },
  })
  links.connect({ onTold: (told, ageMs) => remote.byLink(told, ageMs), onLost: () => remote.release() })

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
    [Symbol.dispose]: () => remote[Symbol.dispose](),
  }
}

type Topics = ReturnType<typeof createTopics>

function createTopics(log: Log) {
  return {
    changed: createSubscriptions<JobChanged>('changed', log),
    work: createSubscriptions<{ readonly pool: string | undefined; readonly isRemote: boolean }>('work', log),
    directory: createSubscriptions<DirectoryChanged>('directory', log),
    call: createSubscriptions<CallMoved>('call', log),
    gap: createSubscriptions<undefined>('gap', log),
  }
}

interface RemoteNoticesDeps {
  readonly topics: Topics
  readonly live: ReturnType<typeof createLiveSubscriptions<LiveEvent>>
  readonly heard: LiveLog
  readonly links: LiveLinks
  readonly now: () => number
}

/** What other processes say, to the listeners of this one. */
class RemoteNotices implements Disposable {
  readonly #deps: RemoteNoticesDeps
  readonly #moves: MoveOrder
  #heardCount = 0

  constructor(deps: RemoteNoticesDeps) {
    this.#deps = deps
    this.#moves = new MoveOrder({ deliver: (notice) => deps.topics.changed.publish({ ...notice, isRemote: true }) })
  }

  byMedium(told: Notice, from: string): void {
    const { topics, links } = this.#deps
    if (told.kind === 'changed') {
      const { jobId, accountId, move } = told.notice
      if (move === 'taken') links.noteHolder(jobId, from, accountKey(accountId))
      const isOpen = () => links.hears(from, [jobKey(jobId), accountKey(accountId)])
      this.#moves.byMedium(told.notice, isOpen() ? { isOpen, isArriving: () => links.isReceivingFrom(from) } : null)
    } else if (told.kind === 'work') topics.work.publish({ pool: told.pool, isRemote: true })
    else if (told.kind === 'directory') topics.directory.publish(told.notice)
    else if (told.kind === 'call') topics.call.publish(told.notice)
  }

  byLink(told: JobNotice, ageMs: number): void {
    if (told.kind === 'changed') {
      this.#moves.byLink(told.notice, ageMs)
      return
    }
    const { heard, live, now } = this.#deps
    const toldAtMs = now() - ageMs
    heard.add(new ToldNotice(++this.#heardCount, toldAtMs, told))
    live.publishRemote(told.notice, toldAtMs)
  }

  /** A link broke: whatever waited for one is delivered. */
  release(): void {
    this.#moves.release()
  }

  [Symbol.dispose](): void {
    this.#moves[Symbol.dispose]()
  }
}

interface MoveOrderDeps {
  deliver(notice: JobChanged): void
}

/** What is known of the link over which a move comes as well. */
interface LinkState {
  isOpen(): boolean
  /** Whether something large is on its way there. */
  isArriving(): boolean
}

interface Held {
  readonly notice: JobChanged
  readonly link: LinkState
  timer: NodeJS.Timeout
  heldMs: number
}

const LOOK_MS = 500
// A link that is open brings everything, however busy both sides are; one that leads nowhere is noticed about as soon.
const MAX_HOLD_MS = 5000
// While a large event from before the end is still being received.
const MAX_ARRIVING_MS = 30_000
/** A new link repeats old events: by then the medium has delivered them, or listeners have read the store again. */
const OLD_MS = 2000
const MAX_KNOWN = 20_000

/** What follows everything that a run has told. */
const ENDS_OF_RUNS: ReadonlySet<JobMove> = new Set(['ended', 'returned'])

/**
 * Moves of jobs may arrive twice, over the medium that all processes share (Postgres or NATS) and over the link to the process that
 * runs the job; each is delivered once. Over the link they are in order with the job's other events. So where there is a link, the
 * end of a run that arrives over the medium waits for its copy over the link, while the link is open and for a bounded time. That the
 * job has a newer version is delivered at once, for listeners that only read the job.
 */
export class MoveOrder implements Disposable {
  readonly #deps: MoveOrderDeps
  readonly #known = new BoundedSet<string>(MAX_KNOWN)
  readonly #held = new Map<string, Held>()

  constructor(deps: MoveOrderDeps) {
    this.#deps = deps
  }

  /** `link`: null: there is none. */
  byMedium(notice: JobChanged, link: LinkState | null): void {
    const key = keyOf(notice)
    if (key === null) this.#deps.deliver(notice)
    else if (this.#known.has(key) || this.#held.has(key)) return
    else if (link === null || !this.#mustWait(notice)) this.#deliver(key, notice)
    else {
      this.#held.set(key, { notice, link, heldMs: 0, timer: this.#wait(key) })
      this.#deps.deliver(toVersion(notice))
    }
  }

  byLink(notice: JobChanged, ageMs: number): void {
    const key = keyOf(notice)
    if (key === null) this.#deps.deliver(notice)
    else if (this.#known.has(key)) return
    else if (ageMs > OLD_MS && !this.#held.has(key)) this.#deps.deliver(toVersion(notice))
    else this.#deliver(key, notice)
  }

  /** A link broke: whatever waited for one is delivered. */
  release(): void {
    for (const [key, { notice }] of [...this.#held]) this.#deliver(key, notice)
  }

  [Symbol.dispose](): void {
    for (const { timer } of this.#held.values()) clearTimeout(timer)
    this.#held.clear()
  }

  #mustWait({ jobId, move }: JobChanged): boolean {
    if (move !== undefined && ENDS_OF_RUNS.has(move)) return true
    return this.#held.size > 0 && [...this.#held.values()].some(({ notice }) => notice.jobId === jobId)
  }

  #wait(key: string): NodeJS.Timeout {
    return setTimeout(() => {
      const held = this.#held.get(key)
      if (held === undefined) return
      held.heldMs += LOOK_MS
      const { link, heldMs } = held
      const mayCome = link.isOpen() && heldMs < (link.isArriving() ? MAX_ARRIVING_MS : MAX_HOLD_MS)
      if (mayCome) held.timer = this.#wait(key)
      else this.#deliver(key, held.notice)
    }, LOOK_MS)
  }

  #deliver(key: string, notice: JobChanged): void {
    const held = this.#held.get(key)
    if (held !== undefined) clearTimeout(held.timer)
    this.#held.delete(key)
    this.#known.add(key)
    this.#deps.deliver(notice)
  }
}

/** null: it only says that there is a newer version, which may be said as often as one likes. */
function keyOf({ jobId, version, move }: JobChanged): string | null {
  return move === undefined ? null : `${jobId} ${version} ${move}`
}

function toVersion({ jobId, accountId, version }: JobChanged): JobChanged {
  return { jobId, accountId, version }
}

// What one batch may hold.
const MAX_BYTES = 1024 * 1024

interface Waiting {
  readonly line: string
  readonly bytes: number
}

/**
 * Lines that wait to be sent together, in the order in which they were said. Equal lines are one, and a line that only says
 * which version something has gives way to the next one about the same. Pure.
 */
export class NoticeBatch {
  readonly #lines = new Map<string, Waiting>()
  readonly #maxPayloadBytes: number
  #bytes = 0
  #hasLost = false

  constructor(maxPayloadBytes: number) {
    this.#maxPayloadBytes = maxPayloadBytes
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0 && !this.#hasLost
  }

  /** Whether something was left out that others cannot do without: they must look again at everything. */
  get hasLost(): boolean {
    return this.#hasLost
  }

  add({ line }: EncodedNotice, notice: Notice): void {
    const bytes = Buffer.byteLength(line) + 1
    const key = mergeKeyOf(notice) ?? line
    const before = this.#lines.get(key)
    // Said again as it was: where it stands already it comes early enough.
    if (before?.line === line) return
    if (before !== undefined) {
      this.#lines.delete(key)
      this.#bytes -= before.bytes
    }
    if (bytes > this.#maxPayloadBytes || this.#bytes + bytes > MAX_BYTES) {
      this.#hasLost = true
      return
    }
    this.#lines.set(key, { line, bytes })
    this.#bytes += bytes
  }

  /** What was said, or what was taken last, could not be sent. */
  lose(): void {
    this.#hasLost = true
    this.#clear()
  }

  /**
   * All lines, packed into as few texts as they fit in; empties the batch. A line that is longer than `maxBytes`, where that is less
   * than was said when the batch was made, is a text of its own.
   */
  take(maxBytes = this.#maxPayloadBytes): string[] {
    const payloads: string[] = []
    let payload: string[] = []
    let size = 0
    for (const { line, bytes } of this.#lines.values()) {
      if (payload.length > 0 && size + bytes > maxBytes) {
        payloads.push(payload.join('\n'))
        payload = []
        size = 0
      }
      payload.push(line)
      size += bytes
    }
    if (payload.length > 0) payloads.push(payload.join('\n'))
    this.#clear()
    this.#hasLost = false
    return payloads
  }

  #clear(): void {
    this.#lines.clear()
    this.#bytes = 0
  }
}

/** The next line with the same key says everything that this one did. */
function mergeKeyOf(notice: Notice): string | null {
  if (notice.kind === 'changed') return notice.notice.move === undefined ? `changed ${notice.notice.jobId}` : null
  return notice.kind === 'directory' ? `directory ${notice.notice.directory}` : null
}
