/** What a server tells by itself: the messages of its socket, given to the runs that they are about, and the lines that it prints. */
import type { Clock } from '../../../../../lib/clock.ts'
import type { Log } from '../../../../../lib/log.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi } from './comfy-api.ts'
import { type EngineSocket, openSocket } from './comfy-socket.ts'
import { createLineSource, type LineSource } from './line-source.ts'
import { createMessageDispatcher, type MessageDispatcher } from './message-dispatcher.ts'

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
