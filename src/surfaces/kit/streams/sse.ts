/**
 * Server-sent events on the wire: frames, the head of the answer, and taking a socket over from the HTTP layer. The body is
 * delimited by the end of the connection: chunking would cost a copy and two more writes per frame and reader.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Ticker } from '../../../../lib/clock.ts'
import type { Preview } from '../../../domain/jobs/read/watch-job.ts'
import { STREAM } from '../connections/raw-connections.ts'

const KEEPALIVE_COMMENT = Buffer.from(': keepalive\n\n')
const CLOSING_COMMENT = Buffer.from(': closing\n\n')

const STREAM_HEADERS = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-cache',
  'Connection',
  'keep-alive',
  'X-Accel-Buffering',
  'no',
]

/** `json` must be one line, as JSON.stringify writes it. */
export function encodeFrame(event: string, json: string): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${json}\n\n`)
}

/** The answer's head with the stream's own headers in place of equally named ones of `headers`. */
export function encodeStreamHead(headers: readonly string[]): string {
  let head = `HTTP/1.1 200 OK\r\nDate: ${new Date().toUTCString()}\r\n`
  for (let at = 0; at < headers.length; at += 2) {
    if (!STREAM_HEADERS.includes(headers[at])) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  }
  for (let at = 0; at < STREAM_HEADERS.length; at += 2) head += `${STREAM_HEADERS[at]}: ${STREAM_HEADERS[at + 1]}\r\n`
  return `${head}\r\n`
}

/**
 * Cuts the socket loose from its response, so that neither the response nor whatever hangs on it stays in memory for the
 * life of the stream. The response is told that it is over. A response that comes behind others on its connection has to
 * wait until they are written; null when the connection ends before that.
 */
export async function takeSocket(response: ServerResponse): Promise<Socket | null> {
  if (response.socket === null) await untilItHasSocket(response)
  const socket = response.socket
  if (socket === null || socket.destroyed) return null
  // What node does when a peer ends its side, namely end ours, is right for answers and wrong for a stream.
  socket.removeAllListeners('end')
  response.detachSocket(socket)
  response.emit('close')
  // The idle timeout of ordinary requests does not apply: a stream is alive as long as it is kept alive.
  socket.setTimeout(0)
  socket.setNoDelay(true)
  return socket
}

function untilItHasSocket(response: ServerResponse): Promise<void> {
  const connection = response.req.socket
  if (connection.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      response.off('socket', done)
      connection.off('close', done)
      resolve()
    }
    response.once('socket', done)
    connection.once('close', done)
  })
}

// One open event stream: the socket, how far its reader got, and nothing of the request that opened it. Thousands are open at
// once, so this is a class whose methods are shared, and its socket listeners are shared functions that find their stream on
// the socket itself.
// A reader that does not keep up gets nothing more until its socket has drained, and then the newest state from its source.

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

// Fewer pieces with the same bytes. Large ones, such as pictures, stay as they are: copies of them would hold the thread.

// Below this, a copy is cheaper than one more piece for thousands of sockets.
const JOIN_BELOW_BYTES = 262_144

export function joinSmall(frames: readonly Buffer[]): readonly Buffer[] {
  const pieces: Buffer[] = []
  let small: Buffer[] = []
  const closeRow = () => {
    if (small.length > 0) pieces.push(small.length === 1 ? small[0] : Buffer.concat(small))
    small = []
  }
  for (const frame of frames) {
    if (frame.length < JOIN_BELOW_BYTES) small.push(frame)
    else {
      closeRow()
      pieces.push(frame)
    }
  }
  closeRow()
  return pieces
}

// The event that shows a preview. It may have megabytes, so its text is written straight into the frame, piece by piece: as a text
// of its own it would be copied and looked through several times.

// A multiple of three: only the last piece may end in padding.
const PIECE_BYTES = 3 * 16_384

export function toPreviewFrame({ nodeId, contentType, bytes }: Preview): Buffer {
  const picture = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields = JSON.stringify({ node_id: nodeId, content_type: contentType })
  const head = Buffer.from(`event: preview\ndata: ${fields.slice(0, -1)},"data_base64":"`)
  const tail = '"}\n\n'
  const frame = Buffer.allocUnsafeSlow(head.length + 4 * Math.ceil(picture.length / 3) + tail.length)
  let at = head.copy(frame)
  for (let from = 0; from < picture.length; from += PIECE_BYTES) {
    at += frame.write(picture.toString('base64', from, from + PIECE_BYTES), at, 'latin1')
  }
  frame.write(tail, at, 'latin1')
  return frame
}
