/**
 * Live links as messages between two processes through NATS, so that they need not dial each other. A message names the link and
 * its number in it: core NATS may lose messages, and a link in which one is missing is closed, so that its reader
 * comes back for what it lacks.
 */
import { newUuidV4 } from '../../../../lib/ids.ts'
import type { Channel, ChannelEvents, Transport } from '../live/transport.ts'
import type { NatsLine } from './nats-connection.ts'

/** `dial` and its answer `take`, frames of either side, and the end. */
const KINDS = ['dial', 'take', 'frame', 'end'] as const

interface Message {
  readonly link: string
  readonly kind: (typeof KINDS)[number]
  readonly number: number
  readonly frame: Uint8Array
}

interface Link {
  readonly peer: string
  readonly channel: Channel
  events: ChannelEvents | null
  /** Of a link that was dialled, until the other side has taken it. */
  onTaken: (() => void) | null
  sent: number
  received: number
}

const LINE_END = 10
const HEAD_BYTES = 200
const MAX_FRAME_BYTES = 512 * 1024

export function createNatsTransport(line: NatsLine, self: string): Transport {
  const links = new Map<string, Link>()
  let open: Parameters<Transport['accept']>[0] | null = null

  function say(to: string, link: string, kind: Message['kind'], number = 0, frame?: Uint8Array): boolean {
    const head = Buffer.from(`${link} ${kind} ${number}\n`)
    return line.say(`link.${to}`, frame === undefined ? head : Buffer.concat([head, frame]))
  }

  function forget(id: string): void {
    const link = links.get(id)
    links.delete(id)
    link?.events?.onClosed()
  }

  function begin(id: string, peer: string): Link {
    const link: Link = {
      peer,
      events: null,
      onTaken: null,
      sent: 0,
      received: 0,
      channel: {
        send(frame) {
          if (links.has(id) && !say(peer, id, 'frame', ++link.sent, frame)) this.close()
        },
        close() {
          if (!links.has(id)) return
          say(peer, id, 'end')
          forget(id)
        },
      },
    }
    links.set(id, link)
    return link
  }

  function take({ link: id, kind, number, frame }: Message, from: string): void {
    const link = links.get(id)
    if (kind === 'dial' && link === undefined && open !== null) {
      const taken = begin(id, from)
      taken.events = open(taken.channel, from)
      say(from, id, 'take')
    } else if (link === undefined || link.peer !== from) {
      // A link of before this process started, or before the connection was lost.
      if (kind === 'frame') say(from, id, 'end')
    } else if (kind === 'take') link.onTaken?.()
    else if (kind === 'end') forget(id)
    else if (number !== ++link.received) link.channel.close()
    else link.events?.onFrame(frame)
  }

  line.hear(`link.${self}`, (data, from) => {
    const message = readMessage(data)
    if (message !== null) take(message, from)
  })
  line.watch({
    onAway() {
      for (const id of [...links.keys()]) forget(id)
    },
    onBack() {},
  })

  return {
    maxFrameBytes: Math.min(MAX_FRAME_BYTES, line.maxPayloadBytes - HEAD_BYTES - 16),
    reaches: () => true,
    accept(opened) {
      open = opened
    },
    async dial({ id: peer }, events, signal) {
      const id = newUuidV4()
      const link = begin(id, peer)
      try {
        await new Promise<void>((resolve, reject) => {
          link.onTaken = resolve
          const giveUp = () => reject(new Error('the other process does not answer'))
          link.events = { onFrame() {}, onClosed: giveUp }
          if (!say(peer, id, 'dial')) giveUp()
          signal.addEventListener('abort', giveUp, { once: true })
        })
      } catch (error) {
        links.delete(id)
        throw error
      }
      link.events = events
      return link.channel
    },
    async [Symbol.asyncDispose]() {
      for (const { channel } of [...links.values()]) channel.close()
    },
  }
}

function readMessage(data: Uint8Array): Message | null {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  const end = bytes.indexOf(LINE_END)
  if (end < 0 || end > HEAD_BYTES) return null
  const [link, word, number] = bytes.toString('utf8', 0, end).split(' ')
  const kind = KINDS.find((each) => each === word)
  if (link === undefined || kind === undefined || !/^\d{1,15}$/.test(number ?? '')) return null
  return { link, kind, number: Number(number), frame: bytes.subarray(end + 1) }
}
