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
import { createBackoff, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from './comfy-api.ts'
import { createMessageDispatcher, type MessageDispatcher } from './message-dispatcher.ts'
import { createLineSource, type LineSource } from './printed-lines.ts'
import { type EngineMessage, readBinaryFrame, readTextFrame } from './socket-frames.ts'

type SocketState = 'open' | 'connecting' | 'closed'

export interface EngineSocket {
  /** The id for prompts that are submitted now. */
  clientId(): string
  state(): SocketState
  /** Whether the socket under this id is open and has brought at least one message. */
  isHeard(clientId: string): boolean
  reconnects(): number
  /** Of the present connection, also of a frame that has come in part. */
  receivedBytes(): number
  /** Resolves when it is open, at the latest after `ms`. */
  untilOpen(ms: number): Promise<void>
  /** The server answers: what was a pause before the next try is over, and runs wait for the socket again. */
  connectNow(): void
  /** Ends the present connection, which is taken for dead, and opens another. */
  renew(): void
  close(): Promise<void>
}

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

function openSocket(options: SocketOptions): EngineSocket {
  const { bounds, log } = options
  const closing = new AbortController()
  const backoff = createBackoff({ firstMs: bounds.reconnectFirstMs, maxMs: bounds.reconnectMaxMs })
  let clientId = options.newClientId()
  let socket: WebSocket | null = null
  let isHeard = false
  let connections = 0
  let failuresInARow = 0
  let onOpened = Promise.withResolvers<void>()
  let pause = new AbortController()
  let stream: Socket | null = null

  function connect(): Promise<void> {
    const opened = new WebSocket(toSocketUrl(options.url, clientId), {
      perMessageDeflate: false,
      maxPayload: bounds.maxFrameBytes,
      handshakeTimeout: bounds.socketOpenMs,
      headers: options.headers,
    })
    socket = opened
    isHeard = false
    opened.on('upgrade', (answer) => {
      stream = answer.socket
    })
    opened.on('open', () => {
      connections++
      failuresInARow = 0
      opened.send(FEATURES)
      onOpened.resolve()
      options.onOpen(clientId)
    })
    opened.on('message', (data, isBinary) => take(data as Buffer, isBinary))
    return new Promise((resolve) => {
      opened.on('error', (error) => log.debug({ err: error }, 'the socket to an engine failed'))
      opened.on('close', () => resolve())
    })
  }

  function take(data: Buffer, isBinary: boolean): void {
    isHeard = true
    backoff.reset()
    const message = isBinary ? readBinaryFrame(data) : readTextFrame(data.toString('utf8'))
    if (message === null) return
    try {
      options.onMessage(message)
    } catch (error) {
      log.error({ err: error }, 'a message of an engine could not be handled')
    }
  }

  async function keepOpen(): Promise<void> {
    while (!closing.signal.aborted) {
      failuresInARow++
      await connect()
      onOpened.resolve()
      onOpened = Promise.withResolvers()
      socket = null
      if (closing.signal.aborted) return
      options.onClose()
      const isKept = options.isIdNeeded()
      const over = AbortSignal.any([closing.signal, pause.signal])
      await sleep(Math.max(backoff.nextMs(), isKept ? bounds.sameIdPauseMs : 0), over)
      pause = new AbortController()
      if (!isKept) clientId = options.newClientId()
    }
  }

  const ended = keepOpen()

  return {
    clientId: () => clientId,
    state() {
      if (closing.signal.aborted || socket === null) return 'closed'
      return socket.readyState === WebSocket.OPEN ? 'open' : 'connecting'
    },
    isHeard: (id) => id === clientId && isHeard && socket?.readyState === WebSocket.OPEN,
    reconnects: () => Math.max(0, connections - 1),
    receivedBytes: () => stream?.bytesRead ?? 0,
    async untilOpen(ms) {
      if (socket?.readyState === WebSocket.OPEN || failuresInARow > MAX_FAILURES_TO_WAIT_FOR) return
      const over = new AbortController()
      await Promise.race([onOpened.promise, sleep(ms, over.signal)])
      over.abort()
    },
    connectNow() {
      if (socket?.readyState === WebSocket.OPEN) return
      failuresInARow = 0
      backoff.reset()
      // A try that is under way may have begun too early: then the pause behind it is the one that is left out.
      if (!options.isIdNeeded()) pause.abort(null)
    },
    renew() {
      socket?.terminate()
    },
    async close() {
      closing.abort()
      socket?.terminate()
      await ended
    },
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
}

export function openLiveFeed(options: LiveFeedOptions): LiveFeed {
  const { api, url, headers, bounds, isOurs, clock, log, newClientId, onHeard, onClose } = options
  const dispatcher = createMessageDispatcher({ ...bounds, onPrinted: (entries) => lines.printed.hear(entries) })
  const lines = createLineSource({ api, dispatcher, clock, log, isOurs, onPrinted: options.onPrinted })
  const socket = openSocket({
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
  return { dispatcher, lines, socket }
}
