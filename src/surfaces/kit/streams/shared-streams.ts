/**
 * Event streams with few kinds of readers: sources that their readers share, a bound per account, one timer for everything that happens by
 * time, and the end of a stream within a second of its credential's.
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
  tick(): void
  close(): void
}

interface StreamsOptions {
  readonly accountConnections: AccountConnections
  readonly isWelcome: IsWelcome
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
  make(): SourceParts
}

/** A source without what the streams themselves look after. */
type SourceParts = Omit<SharedSource, 'left'> & { left?(stream: EventStream): void }

export interface SharedStreams {
  /** Takes the response over. Throws before the first byte. */
  open(response: ServerResponse, request: StreamRequest): Promise<void>
  openStreams(): number
  /** Ends every stream; new ones are refused. `last`: a final frame for each. */
  close(last?: Buffer): void
}

interface Shared {
  readonly source: SharedSource
  readers: number
}

const TICK_MS = 125
const CHECK_EVERY_TICKS = 4

export function createSharedStreams(options: StreamsOptions): SharedStreams {
  const { accountConnections, isWelcome, ticker = systemTicker } = options
  const sources = new Map<string, Shared>()
  const streams = new Map<EventStream, StreamRequest>()
  /** Sessions that are being looked at. */
  const asked = new Set<string>()
  let stopTicking: (() => void) | null = null
  let ticks = 0
  let isClosed = false
  const stopListening = options.onCredentialsChanged(() => {
    for (const [stream, { caller }] of streams) if (!isWelcome(caller)) stream.end()
  })

  function tick(): void {
    for (const { source } of sources.values()) source.tick()
    ticks += 1
    if (ticks % CHECK_EVERY_TICKS !== 0) return
    for (const [stream, request] of streams) check(stream, request)
  }

  function check(stream: EventStream, { caller, session }: StreamRequest): void {
    if (!isWelcome(caller)) stream.end()
    else if (session !== undefined && !asked.has(session.text)) askAbout(session)
    stream.check()
  }

  /** Once for all streams of a session, and not again before the answer is there. */
  function askAbout({ text, isGood }: StreamSession): void {
    asked.add(text)
    isGood()
      .then(
        (isStillGood) => {
          if (isStillGood) return
          for (const [stream, { session }] of streams) if (session?.text === text) stream.end()
        },
        // A store that is away says nothing against anybody.
        () => {},
      )
      .finally(() => asked.delete(text))
  }

  function share({ key, caller, make }: StreamRequest): Shared {
    const known = sources.get(key)
    if (known !== undefined) return known
    const made = make()
    const source: SharedSource = {
      ...made,
      left(stream) {
        made.left?.(stream)
        streams.delete(stream)
        giveBack(key, shared, caller.accountId)
        if (streams.size > 0) return
        stopTicking?.()
        stopTicking = null
      },
    }
    const shared: Shared = { source, readers: 0 }
    sources.set(key, shared)
    return shared
  }

  function giveBack(key: string, shared: Shared, accountId: string): void {
    accountConnections.giveBack(accountId)
    shared.readers -= 1
    if (shared.readers > 0) return
    if (sources.get(key) === shared) sources.delete(key)
    shared.source.close()
  }

  return {
    async open(response, request) {
      const { accountId } = request.caller
      if (isClosed) throw tooManyStreams()
      await accountConnections.take(accountId)
      const shared = share(request)
      shared.readers += 1
      try {
        await shared.source.ready
        if (isClosed) throw tooManyStreams()
      } catch (error) {
        giveBack(request.key, shared, accountId)
        throw error
      }
      const socket = await takeSocket(response)
      if (socket === null) return giveBack(request.key, shared, accountId)
      stopTicking ??= ticker.every(TICK_MS, tick)
      socket.cork()
      socket.write(encodeStreamHead(request.headers))
      const stream = new EventStream(socket, shared.source, ticker)
      streams.set(stream, request)
      shared.source.join(stream)
      socket.uncork()
    },
    openStreams: () => streams.size,
    close(last) {
      isClosed = true
      stopListening()
      for (const stream of streams.keys()) {
        if (last !== undefined) stream.send(last)
        stream.end()
      }
    },
  }
}
