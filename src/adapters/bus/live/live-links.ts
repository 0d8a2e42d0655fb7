/**
 * Live events of jobs between processes, on demand. This process sends others the events that they ask for of jobs that run here,
 * and gets from others what has a listener here: events of one job from the process that runs it, those of an account from all
 * processes. Without a listener nothing is sent. Events may be lost when a link breaks; the store has the true state of a job.
 */

import { uptimeMs } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { jobIdOf, jobKey } from '../local.ts'
import { LinkSource } from './link-source.ts'
import { LINK_TIMING, type LinkTiming, LinkWatcher } from './link-watcher.ts'
import { LiveLog } from './live-log.ts'
import { OUTBOX_BOUNDS, type OutboxBounds } from './outbox.ts'
import { type Channel, isForOthers, type JobNotice, type Peer, ToldNotice, type Transport } from './told-notice.ts'

/** Who else is there, and who runs which job. */
export interface LinkDirectory {
  /** Every process that lives, this one apart. */
  listPeers(): Promise<readonly Peer[]>
  /** By job, the processes that may have its events: mostly the one that holds it. Without jobs that no process holds. */
  findHolders(jobIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>
}

export interface LinkStats {
  /** Links over which this process receives, and links over which it sends. */
  readonly open: number
  readonly served: number
  /** Links that are wanted and not open. */
  readonly broken: number
  readonly lost: number
  readonly previewsDropped: number
  /** Links that were given up because their reader was too slow. */
  readonly readersGivenUp: number
}

interface LinksDeps {
  readonly transport: Transport
  readonly directory: LinkDirectory
  readonly log: Log
  readonly bounds?: Partial<OutboxBounds>
  readonly timing?: Partial<LinkTiming>
  /** For tests: in place of the uptime of this process. */
  readonly now?: () => number
}

interface LinkReceiver {
  onTold(notice: JobNotice, ageMs: number): void
  /** What was to come over a link may not come. */
  onLost(): void
}

// How often peers and the holders of watched jobs are looked up again, in case a notice about them was lost.
const LOOK_EVERY_MS = 5000

export class LiveLinks implements AsyncDisposable {
  readonly #deps: LinksDeps
  readonly #timing: LinkTiming
  readonly #now: () => number
  readonly #log = new LiveLog()
  readonly #sources = new Set<LinkSource>()
  readonly #watchers = new Map<string, LinkWatcher>()
  readonly #topics = new Set<string>()
  /** Jobs whose holder is to be looked up at the next occasion. */
  readonly #unfound = new Set<string>()
  readonly #counts = { lost: 0, previewsDropped: 0, readersGivenUp: 0 }
  #receiver: LinkReceiver | null = null
  #seq = 0
  #looking: Promise<void> | null = null
  #mustLook = false
  #mustFindPeers = true
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(deps: LinksDeps) {
    this.#deps = deps
    this.#now = deps.now ?? uptimeMs
    this.#timing = { ...LINK_TIMING, ...deps.timing }
    const bounds = { ...OUTBOX_BOUNDS, ...deps.bounds }
    const pieceBytes = Math.min(bounds.pieceBytes, deps.transport.maxFrameBytes)
    deps.transport.accept((channel) => this.#serve(channel, { ...bounds, pieceBytes }))
  }

  connect(receiver: LinkReceiver): void {
    this.#receiver = receiver
  }

  /** What this process tells about a job. */
  publish(notice: JobNotice): void {
    if (!isForOthers(notice)) return
    const told = new ToldNotice(++this.#seq, this.#now(), notice)
    this.#log.add(told)
    for (const source of this.#sources) source.offer(told)
  }

  /** Somebody here listens to this topic from now on. */
  watch(topic: string): void {
    if (this.#topics.has(topic)) return
    this.#topics.add(topic)
    this.#checkRegularly()
    const jobId = jobIdOf(topic)
    if (jobId !== null) this.#unfound.add(jobId)
    else for (const watcher of this.#watchers.values()) watcher.want(topic)
    if (jobId !== null || this.#mustFindPeers) this.#look()
  }

  unwatch(topic: string): void {
    this.#topics.delete(topic)
    const jobId = jobIdOf(topic)
    if (jobId !== null) this.#unfound.delete(jobId)
    for (const watcher of this.#watchers.values()) watcher.leave(topic)
  }

  isWatched(topic: string): boolean {
    return this.#topics.has(topic)
  }

  /** Another process has said that it runs this job now. */
  noteHolder(jobId: string, nodeId: string, accountTopic: string): void {
    const topic = jobKey(jobId)
    const isWatched = this.#topics.has(topic)
    if (!isWatched && !this.#topics.has(accountTopic)) return
    const watcher = this.#watchers.get(nodeId)
    if (watcher === undefined) this.#mustFindPeers = true
    if (isWatched) {
      watcher?.want(topic)
      // It may have spoken for somebody whose news come by another process.
      this.#unfound.add(jobId)
    }
    if (isWatched || watcher === undefined) this.#look()
  }

  /** Whether what this process tells about one of these topics comes over a link. */
  hears(nodeId: string, topics: readonly string[]): boolean {
    return this.#watchers.get(nodeId)?.hears(topics) ?? false
  }

  isReceivingFrom(nodeId: string): boolean {
    return this.#watchers.get(nodeId)?.isReceiving ?? false
  }

  /** Notices may have been lost: who is there, and who runs what is watched, is looked up again. */
  doubt(): void {
    for (const topic of this.#topics) {
      const jobId = jobIdOf(topic)
      if (jobId !== null) this.#unfound.add(jobId)
    }
    this.#mustFindPeers = true
    if (this.#topics.size > 0) this.#look()
  }

  #look(): void {
    if (this.#isClosed) return
    this.#mustLook = true
    this.#looking ??= this.#lookUntilDone().finally(() => {
      this.#looking = null
    })
  }

  stats(): LinkStats {
    const watchers = [...this.#watchers.values()].filter(({ isWanted, isOpen }) => isWanted || isOpen)
    const open = watchers.filter(({ isOpen }) => isOpen).length
    return { open, broken: watchers.length - open, served: this.#sources.size, ...this.#counts }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    if (this.#timer !== null) clearInterval(this.#timer)
    await Promise.all([...this.#watchers.values()].map((watcher) => watcher.close()))
    for (const source of [...this.#sources]) source.close()
    await this.#looking
  }

  async #lookUntilDone(): Promise<void> {
    // The jobs of one turn are looked up together.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#mustLook && !this.#isClosed) {
      this.#mustLook = false
      try {
        if (this.#mustFindPeers) await this.#findPeers()
        await this.#findHolders()
      } catch (error) {
        this.#deps.log.debug({ err: error }, 'who runs a job could not be looked up; it is tried again')
      }
    }
  }

  async #findPeers(): Promise<void> {
    this.#mustFindPeers = false
    const peers = await this.#listPeers()
    if (this.#isClosed) return
    const known = new Set(peers.map(({ id }) => id))
    for (const [id, watcher] of this.#watchers) {
      if (known.has(id)) continue
      this.#watchers.delete(id)
      void watcher.close()
    }
    for (const peer of peers) {
      const watcher = this.#watchers.get(peer.id)
      if (watcher !== undefined) watcher.moved(peer)
      else this.#meet(peer)
    }
  }

  async #listPeers(): Promise<readonly Peer[]> {
    try {
      return (await this.#deps.directory.listPeers()).filter((peer) => this.#deps.transport.reaches(peer))
    } catch (error) {
      this.#mustFindPeers = true
      throw error
    }
  }

  #meet(peer: Peer): void {
    const watcher = new LinkWatcher({
      peer,
      transport: this.#deps.transport,
      timing: this.#timing,
      now: this.#now,
      log: this.#deps.log,
      onTold: (notice, ageMs) => this.#receiver?.onTold(notice, ageMs),
      onLost: () => {
        this.#counts.lost++
        this.#receiver?.onLost()
      },
    })
    this.#watchers.set(peer.id, watcher)
    for (const topic of this.#topics) if (jobIdOf(topic) === null) watcher.want(topic)
  }

  async #findHolders(): Promise<void> {
    const jobIds = [...this.#unfound]
    if (jobIds.length === 0) return
    this.#unfound.clear()
    const holders = await this.#deps.directory.findHolders(jobIds).catch((error) => {
      for (const jobId of jobIds) this.#unfound.add(jobId)
      throw error
    })
    if ([...holders.values()].flat().some((nodeId) => !this.#watchers.has(nodeId))) await this.#findPeers()
    for (const [jobId, nodeIds] of holders) {
      const topic = jobKey(jobId)
      if (this.#topics.has(topic)) for (const nodeId of nodeIds) this.#watchers.get(nodeId)?.want(topic)
    }
  }

  #serve(channel: Channel, bounds: OutboxBounds): LinkSource {
    const source = new LinkSource({
      channel,
      log: this.#log,
      bounds,
      now: this.#now,
      silentMs: this.#timing.silentMs * 3,
      onPreviewDropped: () => {
        this.#counts.previewsDropped++
      },
      onOverflow: () => {
        this.#counts.readersGivenUp++
      },
      onClosed: () => this.#sources.delete(source),
    })
    this.#sources.add(source)
    this.#checkRegularly()
    if (this.#isClosed) source.close()
    return source
  }

  #checkRegularly(): void {
    if (!this.#isClosed) this.#timer ??= setInterval(() => this.#check(), LOOK_EVERY_MS)
  }

  #check(): void {
    for (const source of this.#sources) source.check()
    if (this.#topics.size > 0) {
      this.#mustFindPeers = true
      this.#look()
    } else if (this.#sources.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer)
      this.#timer = null
    }
  }
}
