/**
 * The one socket to a server. It is opened again whenever it ends or is taken for dead. ComfyUI keeps sockets by client id and
 * forgets the id when an old connection under it ends, however late that is noticed, so every connection gets an id of its own.
 * The id is kept only while runs are under way, because their events go to the id that they were submitted with: then the server
 * first gets a moment to notice the end of the old connection. Should it take longer, the silence is noticed (see follow-run.ts)
 * and the socket is opened once more.
 */
import type { Socket } from 'node:net'
import WebSocket from 'ws'
import type { Clock } from '../../../../../lib/clock.ts'
import type { Log } from '../../../../../lib/log.ts'
import { type Backoff, createBackoff, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from './comfy-api.ts'
import { MessageDispatcher } from './message-dispatcher.ts'
import { createLineSource, type LineSource } from './printed-lines.ts'
import { type EngineMessage, readBinaryFrame, readTextFrame } from './socket-frames.ts'

type SocketState = 'open' | 'connecting' | 'closed'

interface SocketOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly bounds: ComfyBounds
  readonly log: Log
  newClientId(): string
  /** Runs are under way that were submitted with the present id. */
  isIdNeeded(): boolean
  onMessage(message: EngineMessage): void
  onOpen(clientId: string): void
  onClose(): void
}

const FEATURES = JSON.stringify({ type: 'feature_flags', data: { supports_preview_metadata: true } })

// After this many failed connections in a row, runs start without waiting for the socket.
const MAX_FAILURES_TO_WAIT_FOR = 5

export class EngineSocket {
  readonly #deps: SocketOptions
  readonly #closing = new AbortController()
  readonly #backoff: Backoff
  #clientId: string
  #socket: WebSocket | null = null
  #isHeard = false
  #connections = 0
  #failuresInARow = 0
  #onOpened = Promise.withResolvers<void>()
  #pause = new AbortController()
  #stream: Socket | null = null
  readonly #ended: Promise<void>

  constructor(deps: SocketOptions) {
    this.#deps = deps
    this.#backoff = createBackoff({ firstMs: deps.bounds.reconnectFirstMs, maxMs: deps.bounds.reconnectMaxMs })
    this.#clientId = deps.newClientId()
    this.#ended = this.#keepOpen()
  }

  /** The id for prompts that are submitted now. */
  clientId(): string {
    return this.#clientId
  }

  state(): SocketState {
    if (this.#closing.signal.aborted || this.#socket === null) return 'closed'
    return this.#socket.readyState === WebSocket.OPEN ? 'open' : 'connecting'
  }

  /** Whether the socket under this id is open and has brought at least one message. */
  isHeard(id: string): boolean {
    return id === this.#clientId && this.#isHeard && this.#socket?.readyState === WebSocket.OPEN
  }

  reconnects(): number {
    return Math.max(0, this.#connections - 1)
  }

  /** Of the present connection, also of a frame that has come in part. */
  receivedBytes(): number {
    return this.#stream?.bytesRead ?? 0
  }

  /** Resolves when it is open, at the latest after `ms`. */
  async untilOpen(ms: number): Promise<void> {
    if (this.#socket?.readyState === WebSocket.OPEN || this.#failuresInARow > MAX_FAILURES_TO_WAIT_FOR) return
    const over = new AbortController()
    await Promise.race([this.#onOpened.promise, sleep(ms, over.signal)])
    over.abort()
  }

  /** The server answers: what was a pause before the next try is over, and runs wait for the socket again. */
  connectNow(): void {
    if (this.#socket?.readyState === WebSocket.OPEN) return
    this.#failuresInARow = 0
    this.#backoff.reset()
    // A try that is under way may have begun too early: then the pause behind it is the one that is left out.
    if (!this.#deps.isIdNeeded()) this.#pause.abort(null)
  }

  /** Ends the present connection, which is taken for dead, and opens another. */
  renew(): void {
    this.#socket?.terminate()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#socket?.terminate()
    await this.#ended
  }

  #connect(): Promise<void> {
    const { url, bounds, onOpen, log } = this.#deps
    const opened = new WebSocket(toSocketUrl(url, this.#clientId), {
      perMessageDeflate: false,
      maxPayload: bounds.maxFrameBytes,
      handshakeTimeout: bounds.socketOpenMs,
      headers: this.#deps.headers,
    })
    this.#socket = opened
    this.#isHeard = false
    opened.on('upgrade', (answer) => {
      this.#stream = answer.socket
    })
    opened.on('open', () => {
      this.#connections++
      this.#failuresInARow = 0
      opened.send(FEATURES)
      this.#onOpened.resolve()
      onOpen(this.#clientId)
    })
    opened.on('message', (data, isBinary) => this.#take(data as Buffer, isBinary))
    return new Promise((resolve) => {
      opened.on('error', (error) => log.debug({ err: error }, 'the socket to an engine failed'))
      opened.on('close', () => resolve())
    })
  }

  #take(data: Buffer, isBinary: boolean): void {
    this.#isHeard = true
    this.#backoff.reset()
    const message = isBinary ? readBinaryFrame(data) : readTextFrame(data.toString('utf8'))
    if (message === null) return
    try {
      this.#deps.onMessage(message)
    } catch (error) {
      this.#deps.log.error({ err: error }, 'a message of an engine could not be handled')
    }
  }

  async #keepOpen(): Promise<void> {
    const { onClose, isIdNeeded, bounds, newClientId } = this.#deps
    while (!this.#closing.signal.aborted) {
      this.#failuresInARow++
      await this.#connect()
      this.#onOpened.resolve()
      this.#onOpened = Promise.withResolvers()
      this.#socket = null
      if (this.#closing.signal.aborted) return
      onClose()
      const isKept = isIdNeeded()
      const over = AbortSignal.any([this.#closing.signal, this.#pause.signal])
      await sleep(Math.max(this.#backoff.nextMs(), isKept ? bounds.sameIdPauseMs : 0), over)
      this.#pause = new AbortController()
      if (!isKept) this.#clientId = newClientId()
    }
  }
}

function toSocketUrl(url: URL, clientId: string): URL {
  const target = new URL(url)
  target.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  target.pathname = `${url.pathname.replace(/\/+$/, '')}/ws`
  target.search = `?${new URLSearchParams({ clientId })}`
  target.hash = ''
  // Credentials travel as a header, as with every other call.
  target.username = ''
  target.password = ''
  return target
}

/** What a server tells by itself: the messages of its socket, given to the runs that they are about, and the lines that it prints. */
interface LiveFeedOptions {
  readonly api: ComfyApi
  readonly url: URL
  /** With the credentials of the address. */
  readonly headers: Readonly<Record<string, string>>
  readonly bounds: ComfyBounds
  /** We started the server, and read what its process prints. */
  readonly isOurs: boolean
  readonly clock: Clock
  readonly log: Log
  newClientId(): string
  /** Told what the server prints while something runs there. */
  onPrinted(text: string): void
  /** The socket was opened, or a message came. */
  onHeard(): void
  onClose(): void
}

export interface LiveFeed {
  readonly dispatcher: MessageDispatcher
  readonly lines: LineSource
  readonly socket: EngineSocket
  /**
   * The socket of this client. A prompt that an earlier process submitted is told of to that one's client, so it has a socket of its own
   * until it is given back.
   */
  under(clientId: string): FollowedClient
  close(): Promise<void>
}

interface FollowedClient extends Disposable {
  readonly socket: EngineSocket
}

export function openLiveFeed(options: LiveFeedOptions): LiveFeed {
  const { api, url, headers, bounds, isOurs, clock, log, newClientId, onHeard, onClose } = options
  const dispatcher = new MessageDispatcher({ ...bounds, onPrinted: (entries) => lines.printed.hear(entries) })
  const lines = createLineSource({ api, dispatcher, clock, log, isOurs, onPrinted: options.onPrinted })
  const socket = new EngineSocket({
    ...{ url, headers, bounds, log, newClientId },
    isIdNeeded: () => dispatcher.attached() > 0,
    onMessage(message) {
      dispatcher.receive(message)
      onHeard()
    },
    onClose,
    onOpen(clientId) {
      lines.subscribe(clientId)
      onHeard()
    },
  })
  const others = new Map<string, { readonly socket: EngineSocket; users: number }>()

  function openUnder(clientId: string): EngineSocket {
    return new EngineSocket({
      ...{ url, headers, bounds, log },
      newClientId: () => clientId,
      isIdNeeded: () => true,
      onMessage(message) {
        dispatcher.receive(message)
        onHeard()
      },
      onOpen: onHeard,
      onClose: () => {},
    })
  }

  return {
    ...{ dispatcher, lines, socket },
    under(clientId) {
      if (clientId === socket.clientId()) return { socket, [Symbol.dispose]() {} }
      const other = others.get(clientId) ?? { socket: openUnder(clientId), users: 0 }
      others.set(clientId, other)
      other.users += 1
      return {
        socket: other.socket,
        [Symbol.dispose]() {
          other.users -= 1
          if (other.users > 0) return
          others.delete(clientId)
          void other.socket.close()
        },
      }
    },
    async close() {
      await Promise.all([socket, ...[...others.values()].map((other) => other.socket)].map((each) => each.close()))
    },
  }
}
