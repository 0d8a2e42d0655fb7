/**
 * The receiving end of a link: gets from one other process the events that are watched here. It connects when something is watched,
 * reconnects with growing pauses when the connection breaks, and disconnects when nothing has been watched for a while. After a break
 * the source sends again what it still has, and events that were received before are skipped, so that none is delivered twice.
 */
import type { Log } from '../../../../lib/log.ts'
import { createBackoff, sleep } from '../../../../lib/waiting/sleep.ts'
import { decodeNotice } from '../../../domain/events/notice-lines.ts'
import { JobMarks } from './link-source.ts'
import { PING, readSourceFrame, type SourceFrame, toLeave, toTaken, toWant } from './outbox.ts'
import type { Channel, JobNotice, Peer, Transport } from './told-notice.ts'

export interface LinkTiming {
  /** How often the other side is asked whether it is there. */
  readonly pingEveryMs: number
  /** Nothing heard for this long: the way is broken. */
  readonly silentMs: number
  /** How long a link stays open when nothing is wanted of it. */
  readonly lingerMs: number
  readonly dialMs: number
  readonly retryFirstMs: number
  readonly retryMaxMs: number
}

export const LINK_TIMING: LinkTiming = {
  pingEveryMs: 2000,
  silentMs: 6000,
  lingerMs: 30_000,
  dialMs: 5000,
  retryFirstMs: 100,
  retryMaxMs: 5000,
}

interface WatcherDeps {
  readonly peer: Peer
  readonly transport: Transport
  readonly timing: LinkTiming
  readonly now: () => number
  readonly log: Log
  onTold(notice: JobNotice, ageMs: number): void
  /** A way was open and is not any more. */
  onLost(): void
}

const TAKEN_EVERY_BYTES = 256 * 1024
// The largest picture, and what may be on its way in pieces at a time.
const MAX_ARRIVING_BYTES = 512 * 1024 * 1024

interface Arriving {
  readonly bytes: Buffer
  filled: number
}

export class LinkWatcher {
  readonly peerId: string
  readonly #deps: WatcherDeps
  #peer: Peer
  readonly #wanted = new Set<string>()
  readonly #heard = new Set<string>()
  readonly #heardUntil = new JobMarks()
  readonly #arriving = new Map<number, Arriving>()
  readonly #ending = new AbortController()
  #channel: Channel | null = null
  #running: Promise<void> | null = null
  #heardAtMs = 0
  #receivedBytes = 0
  #saidTakenBytes = 0

  constructor(deps: WatcherDeps) {
    this.#deps = deps
    this.#peer = deps.peer
    this.peerId = deps.peer.id
  }

  get isOpen(): boolean {
    return this.#channel !== null
  }

  get isWanted(): boolean {
    return this.#wanted.size > 0
  }

  /** Whether everything that the peer tells about one of these topics comes this way. */
  hears(topics: readonly string[]): boolean {
    return this.#channel !== null && topics.some((topic) => this.#heard.has(topic))
  }

  /** Whether something large is on its way. */
  get isReceiving(): boolean {
    return this.#arriving.size > 0
  }

  moved(peer: Peer): void {
    this.#peer = peer
  }

  want(topic: string): void {
    if (this.#wanted.has(topic) || this.#ending.signal.aborted) return
    this.#wanted.add(topic)
    this.#channel?.send(toWant(topic))
    this.#run()
  }

  leave(topic: string): void {
    if (!this.#wanted.delete(topic)) return
    this.#heard.delete(topic)
    // Whoever wants it again is told everything again; what is still on its way from before is not part of that.
    this.#heardUntil.forget(topic, this.#wanted)
    this.#channel?.send(toLeave(topic))
  }

  async close(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  #run(): void {
    this.#running ??= this.#keepOpen().finally(() => {
      this.#running = null
      if (this.isWanted && !this.#ending.signal.aborted) this.#run()
    })
  }

  async #keepOpen(): Promise<void> {
    const { timing, log } = this.#deps
    const { signal } = this.#ending
    const backoff = createBackoff({ firstMs: timing.retryFirstMs, maxMs: timing.retryMaxMs })
    while (!signal.aborted && this.isWanted) {
      const closed = new AbortController()
      try {
        const dialling = AbortSignal.any([signal, AbortSignal.timeout(timing.dialMs)])
        const events = { onFrame: (frame: Uint8Array) => this.#onFrame(frame), onClosed: () => closed.abort() }
        this.#channel = await this.#deps.transport.dial(this.#peer, events, dialling)
        await this.#stayOpen(this.#channel, AbortSignal.any([signal, closed.signal]), backoff.reset)
      } catch (error) {
        log.debug({ err: error, node: this.peerId }, 'another process cannot be reached for its live news')
      } finally {
        this.#hangUp()
      }
      if (this.isWanted) await sleep(backoff.nextMs(), signal)
    }
  }

  /** Returns when the way is broken, or is not needed any more. */
  async #stayOpen(channel: Channel, signal: AbortSignal, onProven: () => void): Promise<void> {
    const { timing, now } = this.#deps
    this.#heardAtMs = now()
    for (const topic of this.#wanted) channel.send(toWant(topic))
    let unwantedMs = 0
    while (!signal.aborted) {
      const askedAtMs = now()
      channel.send(PING)
      await sleep(timing.pingEveryMs, signal)
      if (this.#heardAtMs >= askedAtMs) onProven()
      if (now() - this.#heardAtMs > timing.silentMs) return
      unwantedMs = this.isWanted ? 0 : unwantedMs + timing.pingEveryMs
      if (unwantedMs > timing.lingerMs) return
    }
  }

  #hangUp(): void {
    const wasOpen = this.#channel !== null
    this.#channel?.close()
    this.#channel = null
    this.#heard.clear()
    this.#arriving.clear()
    this.#receivedBytes = 0
    this.#saidTakenBytes = 0
    if (wasOpen && this.isWanted) this.#deps.onLost()
  }

  #onFrame(bytes: Uint8Array): void {
    this.#heardAtMs = this.#deps.now()
    this.#receivedBytes += bytes.byteLength
    const frame = readSourceFrame(bytes)
    if (frame !== null) this.#take(frame)
    if (this.#receivedBytes - this.#saidTakenBytes < TAKEN_EVERY_BYTES) return
    this.#saidTakenBytes = this.#receivedBytes
    this.#channel?.send(toTaken(this.#receivedBytes))
  }

  #take(frame: SourceFrame): void {
    if (frame.kind === 'told') this.#hear(frame)
    else if (frame.kind === 'large') this.#begin(frame)
    else if (frame.kind === 'piece') this.#fill(frame)
    else if (frame.kind === 'heard' && this.#wanted.has(frame.topic)) this.#heard.add(frame.topic)
  }

  #hear({ seq, ageMs, notice: encoded }: Extract<SourceFrame, { kind: 'told' }>): void {
    const notice = decodeNotice(encoded)
    if (notice === null || (notice.kind !== 'changed' && notice.kind !== 'live')) return
    if (this.#heardUntil.advance(notice, seq, this.#heard)) this.#deps.onTold(notice, ageMs)
  }

  #begin({ stream, bytes }: Extract<SourceFrame, { kind: 'large' }>): void {
    const underWay = [...this.#arriving.values()].reduce((sum, arriving) => sum + arriving.bytes.byteLength, 0)
    if (underWay + bytes > MAX_ARRIVING_BYTES) this.#channel?.close()
    else this.#arriving.set(stream, { bytes: Buffer.allocUnsafe(bytes), filled: 0 })
  }

  #fill({ stream, data }: Extract<SourceFrame, { kind: 'piece' }>): void {
    const arriving = this.#arriving.get(stream)
    if (arriving === undefined) return
    if (arriving.filled + data.byteLength > arriving.bytes.byteLength) {
      this.#channel?.close()
      return
    }
    arriving.bytes.set(data, arriving.filled)
    arriving.filled += data.byteLength
    if (arriving.filled < arriving.bytes.byteLength) return
    this.#arriving.delete(stream)
    const frame = readSourceFrame(arriving.bytes)
    if (frame?.kind === 'told') this.#hear(frame)
  }
}
