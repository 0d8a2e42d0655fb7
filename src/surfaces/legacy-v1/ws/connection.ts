/**
 * One open socket: what its client said about itself, and how far behind it is. Frames arrive here ready for the wire and
 * are shared with all other readers, so a slow reader costs references to them and no copies. A reader that is behind loses
 * previews; one that falls further behind, or is silent, is closed. No reader waits for another.
 */
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Dialect, EncodedBatch } from './batch.ts'

export interface ConnectionLimits {
  /** Waiting bytes from which on previews are left out. */
  readonly previewBytes: number
  /** Waiting bytes, results aside, with which a reader is closed once it has been behind for `behindMs`. */
  readonly backlogBytes: number
  readonly behindMs: number
  /** Waiting bytes, results aside, with which it is closed at once. */
  readonly maxBytes: number
  /** What results may add to both. */
  readonly resultBytes: number
  /** How long a reader may owe the answer to a ping, and how much it must have been sent meanwhile to be given up for it. */
  readonly silenceMs: number
  readonly silenceBytes: number
}

// Frames are shared by all readers of an account: these limits bound how far the slowest may fall behind, not copies.
export const CONNECTION_LIMITS: ConnectionLimits = {
  previewBytes: 1_048_576,
  backlogBytes: 8_388_608,
  // One turn of the event loop may send a burst; a reader that is alive takes it within moments.
  behindMs: 2_000,
  maxBytes: 67_108_864,
  resultBytes: 134_217_728,
  // Bytes in the kernel's buffers cannot be seen from here; a ping without an answer shows a stalled reader.
  silenceMs: 20_000,
  // A client that reads nothing for a while costs nothing as long as it is sent little.
  silenceBytes: 262_144,
}

export interface ConnectionEvents {
  onPreviewsDropped(count: number): void
  /** The reader was too slow or silent. */
  onGivenUp(): void
  onClosed(connection: SocketConnection): void
  /** A text message of the client. */
  onMessage(connection: SocketConnection, text: string): void
}

interface ConnectionParts {
  readonly ws: WebSocket
  readonly socket: Socket
  readonly clientId: string
  readonly limits: ConnectionLimits
  readonly events: ConnectionEvents
  readonly now: () => number
}

// RFC 6455 (7.4.1): the peer violates the policy of the endpoint. Ours: keep up, and have a valid credential.
const POLICY = 1008
const GOING_AWAY = 1001
const MAX_BYTES_BEFORE_PONG = 65_536
/** How long a close may take before the connection is cut. */
const CLOSE_MS = 2_000

export class SocketConnection {
  readonly clientId: string
  dialect: Dialect = 'plain'
  /** Whether the client has had time to announce its features. */
  hasSpoken = false
  readonly #parts: ConnectionParts
  /** At most this many of the waiting bytes are results. */
  #resultBytes = 0
  /** Since when bytes have been waiting without a break. */
  #behindSince: number | null = null
  #ping: { readonly at: number; readonly bytes: number } | null = null
  #cut: NodeJS.Timeout | null = null

  constructor(parts: ConnectionParts) {
    this.clientId = parts.clientId
    this.#parts = parts
    const { ws, socket, events } = parts
    ws.on('message', (data, isBinary) => {
      if (!isBinary) events.onMessage(this, String(data))
    })
    // Not left to the library: a client that sends pings and reads nothing would fill the memory with answers.
    ws.on('ping', (data) => {
      if (socket.writableLength <= MAX_BYTES_BEFORE_PONG) ws.pong(data)
    })
    ws.on('pong', () => {
      this.#ping = null
    })
    socket.on('drain', () => this.#catchUp())
    // A frame that breaks the protocol: the library closes with the right code.
    ws.on('error', () => {})
    ws.on('close', () => {
      if (this.#cut !== null) clearTimeout(this.#cut)
      events.onClosed(this)
    })
  }

  /** For this reader alone. */
  send(frame: Buffer): void {
    if (this.#isOpen()) this.#parts.socket.write(frame)
  }

  sendBatch(batch: EncodedBatch): void {
    if (!this.#isOpen()) return
    const { socket, limits, events } = this.#parts
    const waiting = socket.writableLength
    if (waiting === 0) this.#catchUp()
    else if (this.#isTooSlow(waiting)) {
      this.#giveUp()
      return
    }
    const isBehind = waiting > limits.previewBytes && batch.previewCount > 0
    if (isBehind) events.onPreviewsDropped(batch.previewCount)
    this.#resultBytes += batch.resultBytes
    for (const piece of isBehind ? batch.essential : batch.all) socket.write(piece)
  }

  #catchUp(): void {
    this.#resultBytes = 0
    this.#behindSince = null
  }

  #isTooSlow(waiting: number): boolean {
    const { limits, now } = this.#parts
    this.#behindSince ??= now()
    const owed = waiting - Math.min(this.#resultBytes, limits.resultBytes)
    return owed > limits.maxBytes || (owed > limits.backlogBytes && now() - this.#behindSince >= limits.behindMs)
  }

  /** Called now and then: pings the reader, and gives it up when neither the answer comes nor what it was sent since is read. */
  check(): void {
    if (!this.#isOpen()) return
    const { ws, socket, limits, now } = this.#parts
    const ping = this.#ping
    if (ping === null) {
      this.#ping = { at: now(), bytes: socket.bytesWritten }
      ws.ping()
    } else if (now() - ping.at >= limits.silenceMs && socket.bytesWritten - ping.bytes > limits.silenceBytes) {
      this.#giveUp()
    }
  }

  /** The service ends: the client may come back to another one. */
  goAway(): void {
    this.#close(GOING_AWAY, 'the service is shutting down')
  }

  /** The credential that it was opened with has ended. */
  dismiss(): void {
    this.#close(POLICY, 'the credential of this socket is no longer good')
  }

  #giveUp(): void {
    this.#parts.events.onGivenUp()
    this.#close(POLICY, 'this reader does not keep up')
  }

  #close(code: number, reason: string): void {
    const { ws } = this.#parts
    ws.close(code, reason)
    this.#cut ??= setTimeout(() => ws.terminate(), CLOSE_MS)
  }

  #isOpen(): boolean {
    const { ws } = this.#parts
    return ws.readyState === ws.OPEN
  }
}
