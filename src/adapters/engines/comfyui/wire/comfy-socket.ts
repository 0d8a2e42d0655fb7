/**
 * The one socket to a server. It is opened anew whenever it ends, or whenever it is taken for dead. ComfyUI keeps sockets by
 * client id and forgets the id when an old connection under it unwinds, however late: so every connection has an id of its
 * own. Only while runs are under way, whose events go to the id they were submitted with, is that id kept: then the old
 * connection gets a moment to unwind first. Should it take longer, the silence is noticed (see follow-run.ts), and the same
 * is done again.
 */
import WebSocket from 'ws'
import { createBackoff } from '../../../../../lib/backoff.ts'
import type { Log } from '../../../../../lib/log.ts'
import { sleep } from '../../../../../lib/sleep.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import { type EngineMessage, readBinaryFrame, readTextFrame } from './socket-frames.ts'

export type SocketState = 'open' | 'connecting' | 'closed'

export interface EngineSocket {
  /** The id for prompts that are submitted now. */
  clientId(): string
  state(): SocketState
  /** Whether the socket under this id is open and has been heard. */
  isHeard(clientId: string): boolean
  reconnects(): number
  /** Resolves when it is open, at the latest after `ms`. */
  untilOpen(ms: number): Promise<void>
  /** Takes the present connection for dead. */
  renew(): void
  close(): Promise<void>
}

export interface SocketOptions {
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

// So many tries in a row may fail before a run no longer waits for the next.
const MAX_HOPE = 5

export function openSocket(options: SocketOptions): EngineSocket {
  const { bounds, log } = options
  const closing = new AbortController()
  const backoff = createBackoff({ firstMs: bounds.reconnectFirstMs, maxMs: bounds.reconnectMaxMs })
  let clientId = options.newClientId()
  let socket: WebSocket | null = null
  let isHeard = false
  let connections = 0
  let failuresInARow = 0
  let onOpened = Promise.withResolvers<void>()

  function connect(): Promise<void> {
    const opened = new WebSocket(toSocketUrl(options.url, clientId), {
      perMessageDeflate: false,
      maxPayload: bounds.maxFrameBytes,
      handshakeTimeout: bounds.socketOpenMs,
      headers: options.headers,
    })
    socket = opened
    isHeard = false
    opened.on('open', () => {
      connections++
      failuresInARow = 0
      opened.send(FEATURES)
      onOpened.resolve()
      options.onOpen(clientId)
    })
    opened.on('message', (data, isBinary) => take(data as Buffer, isBinary))
    return new Promise((resolve) => {
      opened.on('error', (error) => log.debug({ err: error }, 'the socket of an engine failed'))
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
      await sleep(Math.max(backoff.nextMs(), isKept ? bounds.sameIdPauseMs : 0), closing.signal)
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
    async untilOpen(ms) {
      // Where no socket was to be had lately, nobody waits for one: runs do without.
      if (socket?.readyState === WebSocket.OPEN || failuresInARow > MAX_HOPE) return
      const over = new AbortController()
      await Promise.race([onOpened.promise, sleep(ms, over.signal)])
      over.abort()
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
  // As a header, like every other call.
  target.username = ''
  target.password = ''
  return target
}
