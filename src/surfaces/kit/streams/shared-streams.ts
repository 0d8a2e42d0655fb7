/**
 * Event streams: sources that their readers share, a bound per account, one timer for everything that happens by time, and the end of a
 * stream within a second of its credential's. A stream counts against the bound until its socket closes, however that comes about.
 */
import type { ServerResponse } from 'node:http'
import { systemTicker, type Ticker } from '../../../../lib/clock.ts'
import type { Caller, IsWelcome } from '../../../domain/accounts/caller.ts'
import { type AccountConnections, tooManyStreams } from '../connections/account-connections.ts'
import { EventStream, encodeStreamHead, type StreamSource, takeSocket } from './sse.ts'

/** What feeds the streams that share it. It lives as long as somebody reads. */
export interface SharedSource extends StreamSource {
  /** Resolves when readers may join; rejects where there is nothing to read. */
  readonly ready: Promise<void>
  join(stream: EventStream): void
  /** Called several times a second. */
  tick?(): void
  close(): void
}

export interface StreamsOptions {
  readonly accountConnections: AccountConnections
  readonly isWelcome: IsWelcome
  /** Calls the listener when the answer may have changed. */
  readonly onCredentialsChanged: (listener: () => void) => () => void
  readonly ticker?: Ticker
}

export interface StreamSession {
  readonly text: string
  readonly isGood: () => Promise<boolean>
}

interface StreamRequest {
  readonly caller: Caller
  /** The session that the request came with, and whether it is still good; left out: it came with a credential of its own. */
  readonly session?: StreamSession
  /** name, value, name, value. */
  readonly headers: readonly string[]
  /** Readers with the same key share one source. */
  readonly key: string
  make(): SharedSource
}

interface Shared {
  readonly source: SharedSource
  readers: number
}

interface OpenStream {
  readonly request: StreamRequest
  readonly shared: Shared
}

const TICK_MS = 125
const CHECK_EVERY_TICKS = 4

export class SharedStreams implements StreamSource {
  readonly #deps: StreamsOptions
  readonly #sources = new Map<string, Shared>()
  readonly #streams = new Map<EventStream, OpenStream>()
  /** Sessions that are being looked at. */
  readonly #asked = new Set<string>()
  #stopTicking: (() => void) | null = null
  #ticks = 0
  #isClosed = false
  readonly #ticker: Ticker
  readonly #stopListening: () => void

  constructor(deps: StreamsOptions) {
    this.#deps = deps
    this.#ticker = deps.ticker ?? systemTicker
    this.#stopListening = deps.onCredentialsChanged(() => {
      for (const [stream, { request }] of this.#streams) if (!deps.isWelcome(request.caller)) stream.end()
    })
  }

  /** Takes the response over. Throws before the first byte. */
  async open(response: ServerResponse, request: StreamRequest): Promise<void> {
    if (this.#isClosed) throw tooManyStreams()
    await this.#deps.accountConnections.take(request.caller.accountId)
    const shared = this.#share(request)
    shared.readers += 1
    try {
      await shared.source.ready
      if (this.#isClosed) throw tooManyStreams()
    } catch (error) {
      this.#giveBack(request, shared)
      throw error
    }
    const socket = await takeSocket(response)
    if (socket === null) return this.#giveBack(request, shared)
    this.#stopTicking ??= this.#ticker.every(TICK_MS, () => this.#tick())
    socket.cork()
    socket.write(encodeStreamHead(request.headers))
    const stream = new EventStream(socket, this, this.#ticker)
    this.#streams.set(stream, { request, shared })
    shared.source.join(stream)
    socket.uncork()
  }

  resync(stream: EventStream): void {
    this.#streams.get(stream)?.shared.source.resync(stream)
  }

  left(stream: EventStream): void {
    const open = this.#streams.get(stream)
    if (open === undefined) return
    open.shared.source.left(stream)
    this.#streams.delete(stream)
    this.#giveBack(open.request, open.shared)
    if (this.#streams.size > 0) return
    this.#stopTicking?.()
    this.#stopTicking = null
  }

  openStreams(): number {
    return this.#streams.size
  }

  /** Ends every stream; new ones are refused. `last`: a final frame for each. */
  close(last?: Buffer): void {
    this.#isClosed = true
    this.#stopListening()
    for (const stream of this.#streams.keys()) {
      if (last !== undefined) stream.send(last)
      stream.end()
    }
  }

  #tick(): void {
    for (const { source } of this.#sources.values()) source.tick?.()
    this.#ticks += 1
    if (this.#ticks % CHECK_EVERY_TICKS !== 0) return
    for (const [stream, { request }] of this.#streams) this.#check(stream, request)
  }

  #check(stream: EventStream, { caller, session }: StreamRequest): void {
    if (!this.#deps.isWelcome(caller)) stream.end()
    else if (session !== undefined && !this.#asked.has(session.text)) this.#askAbout(session)
    stream.check()
  }

  /** Once for all streams of a session, and not again before the answer is there. */
  #askAbout({ text, isGood }: StreamSession): void {
    this.#asked.add(text)
    isGood()
      .then(
        (isStillGood) => {
          if (isStillGood) return
          for (const [stream, { request }] of this.#streams) if (request.session?.text === text) stream.end()
        },
        // A store that is away says nothing against anybody.
        () => {},
      )
      .finally(() => this.#asked.delete(text))
  }

  #share({ key, make }: StreamRequest): Shared {
    const shared = this.#sources.get(key) ?? { source: make(), readers: 0 }
    this.#sources.set(key, shared)
    return shared
  }

  #giveBack({ key, caller }: StreamRequest, shared: Shared): void {
    this.#deps.accountConnections.giveBack(caller.accountId)
    shared.readers -= 1
    if (shared.readers > 0) return
    if (this.#sources.get(key) === shared) this.#sources.delete(key)
    shared.source.close()
  }
}
