/**
 * One open event stream: the socket, how far its reader got, and nothing of the request that opened it. Thousands are open at
 * once, so this is a class whose methods are shared, and its socket listeners are shared functions that find their stream on
 * the socket itself.
 *
 * A reader that does not keep up gets nothing more until its socket has drained, and then the newest state from its source.
 */
import type { Socket } from 'node:net'
import type { Ticker } from '../../../../lib/waiting/uptime.ts'
import { CLOSING_COMMENT, KEEPALIVE_COMMENT } from './sse.ts'

/** Who feeds a stream. */
export interface StreamSource {
  /** The socket has room again after frames were skipped: send whatever re-syncs this reader. */
  resync(stream: EventStream): void
  /** The socket is gone. Called once. */
  left(stream: EventStream): void
}

/** Frames are shared between readers, so this bounds how far one reader may fall behind rather than a copy. */
const BACKLOG_BYTES = 256 * 1024
/** A reader that takes nothing for this long is gone; its socket would stay open for ever. */
const STALL_MS = 60_000
/** The contract promises a byte at least every 15 s; one look per second and this bound keep us below. */
const SILENCE_MS = 13_000
/** A reader that ended its own side is probed at once, again after the shorter time, and then about every second. */
const PROBE_MS = 1_000
const PROBE_AGAIN_MS = 20

const STREAM = Symbol('event stream')
type StreamSocket = Socket & { [STREAM]?: EventStream }

export class EventStream {
  readonly socket: Socket
  readonly source: StreamSource
  readonly ticker: Ticker
  /** How many of the source's once-only frames this reader has been given. */
  delivered = 0
  private lastByteAt: number
  private stalledAt = -1
  private isEnding = false
  private silenceMs = SILENCE_MS

  constructor(socket: Socket, source: StreamSource, ticker: Ticker) {
    this.socket = socket
    this.source = source
    this.ticker = ticker
    this.lastByteAt = ticker.now()
    ;(socket as StreamSocket)[STREAM] = this
    socket.on('close', onClose)
    socket.on('end', onPeerEnd)
  }

  get isBehind(): boolean {
    return this.stalledAt >= 0
  }

  /** False when the reader is behind and the bytes were skipped. All pieces are sent, or none. */
  send(...pieces: readonly Buffer[]): boolean {
    if (this.stalledAt >= 0 || this.isEnding) return false
    if (this.socket.writableLength > BACKLOG_BYTES) {
      this.stalledAt = this.ticker.now()
      this.socket.once('drain', onDrain)
      return false
    }
    this.lastByteAt = this.ticker.now()
    this.write(pieces)
    return true
  }

  private write(pieces: readonly Buffer[]): void {
    if (pieces.length > 1) this.socket.cork()
    for (const piece of pieces) this.socket.write(piece)
    if (pieces.length > 1) this.socket.uncork()
  }

  /** No more after this; what is queued still goes out. */
  end(...lastPieces: readonly Buffer[]): void {
    if (this.isEnding) return
    this.isEnding = true
    this.stalledAt = this.ticker.now()
    this.write(lastPieces.length === 0 ? [CLOSING_COMMENT] : lastPieces)
    this.socket.destroySoon()
  }

  /** Called about once a second. */
  check(): void {
    const now = this.ticker.now()
    if (this.stalledAt >= 0) {
      if (now - this.stalledAt > STALL_MS) this.socket.destroy()
    } else if (now - this.lastByteAt >= this.silenceMs) this.send(KEEPALIVE_COMMENT)
  }

  /**
   * The peer ended its side: it may still read, or be gone. One that is gone answers a write with a reset, which only the
   * write after it meets. So there are two writes at once, and then one a second.
   */
  peerEnded(): void {
    this.silenceMs = PROBE_MS
    this.send(KEEPALIVE_COMMENT)
    const again = setTimeout(() => this.send(KEEPALIVE_COMMENT), PROBE_AGAIN_MS)
    this.socket.once('close', () => clearTimeout(again))
  }

  drained(): void {
    if (this.isEnding) return
    this.stalledAt = -1
    this.source.resync(this)
  }
}

/** Whether this connection belongs to a stream; further requests on it are not answered. */
export function isStreamSocket(socket: Socket): boolean {
  return (socket as StreamSocket)[STREAM] !== undefined
}

function onClose(this: StreamSocket): void {
  const stream = this[STREAM]
  stream?.source.left(stream)
}

function onPeerEnd(this: StreamSocket): void {
  this[STREAM]?.peerEnded()
}

function onDrain(this: StreamSocket): void {
  this[STREAM]?.drained()
}
