/**
 * The bus between processes over core NATS. Lines of one turn of the event loop are sent together. The connection is tested by
 * receiving what it sent; after it was down, listeners learn that something may have been lost, and read again.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { uptimeMs } from '../../../../lib/clock.ts'
import { newUuidV4 } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import type { BusHealth, ProcessBus } from '../bus-health.ts'
import { type LinkDirectory, LiveLinks } from '../live/live-links.ts'
import type { Channel, ChannelEvents, Transport } from '../live/told-notice.ts'
import { createWireBus, type Medium, NoticeBatch } from '../wire-bus.ts'
import { NatsLine, type NatsOptions } from './nats-connection.ts'

interface NatsBusOptions extends NatsOptions {
  readonly directory: LinkDirectory
  readonly proveMs?: number
}

const SUBJECT = 'notices'
/** Less where a server carries less in one message. */
const MAX_PAYLOAD_BYTES = 32 * 1024
const PROVE_MS = 10_000
const PROOF_WAIT_MS = 3000
const DEAF_MS = 1000
/** Lines that are not notices: something was lost; a proof. */
const LOST = '!'
const PROOF = '? '

/** Throws NatsRefusal when the servers never let this process in. */
export async function openNatsBus(options: NatsBusOptions): Promise<ProcessBus> {
  const { nodeId, directory, log } = options
  const line = new NatsLine(options)
  await line.open()
  const transport = new NatsTransport(line, nodeId)
  const links = new LiveLinks({ transport, directory, log })
  const medium = new NatsMedium(line, options)
  const bus = createWireBus({ medium, links, log })
  await medium.start()
  return {
    ...bus,
    health: () => ({ ...medium.health(), links: links.stats() }),
    prove: () => medium.prove(),
    async [Symbol.asyncDispose]() {
      bus[Symbol.dispose]()
      medium.close()
      await links[Symbol.asyncDispose]()
      await transport[Symbol.asyncDispose]()
      await line[Symbol.asyncDispose]()
    },
  }
}

class NatsMedium implements Medium {
  readonly #line: NatsLine
  readonly #self: string
  readonly #proveMs: number
  readonly #log: Log
  readonly #batch = new NoticeBatch(MAX_PAYLOAD_BYTES)
  readonly #proofs = new Map<string, () => void>()
  #receiver: Parameters<Medium['connect']>[0] | null = null
  #leaving: NodeJS.Immediate | null = null
  #timer: NodeJS.Timeout | null = null
  #provenAtMs = 0
  #hears = false
  #lagMs: number | null = null
  #isClosed = false

  constructor(line: NatsLine, { nodeId, proveMs = PROVE_MS, log }: NatsBusOptions) {
    this.#line = line
    this.#self = nodeId
    this.#proveMs = proveMs
    this.#log = log
  }

  connect(receiver: Parameters<Medium['connect']>[0]): void {
    this.#receiver = receiver
  }

  send(...[encoded, notice]: Parameters<Medium['send']>): void {
    this.#batch.add(encoded, notice)
    this.#leaving ??= setImmediate(() => this.#flush())
  }

  async start(): Promise<void> {
    this.#line.hear(SUBJECT, (data, from) => this.#hear(data, from))
    this.#line.watch({
      onAway: () => {
        this.#hears = false
      },
      onBack: () => void this.#onBack(),
    })
    this.#hears = this.#line.isUp && (await this.prove())
    this.#provenAtMs = uptimeMs()
    if (!this.#isClosed) this.#timer = setInterval(() => void this.#look(), Math.min(DEAF_MS, this.#proveMs))
  }

  health(): Omit<BusHealth, 'links'> {
    return { kind: 'nats', isHearing: this.#hears, lagMs: this.#lagMs, reconnects: this.#line.reconnects }
  }

  async prove(): Promise<boolean> {
    const nonce = newUuidV4()
    const heard = new Promise<void>((resolve) => this.#proofs.set(nonce, resolve))
    this.#flush()
    const askedAtMs = uptimeMs()
    const isSaid = this.#say(`${PROOF}${nonce}`)
    const isHeard = isSaid && (await settlesWithin(heard, PROOF_WAIT_MS))
    this.#proofs.delete(nonce)
    this.#lagMs = isHeard ? uptimeMs() - askedAtMs : null
    // What was heard with the proof is delivered first.
    await turn()
    return isHeard
  }

  close(): void {
    this.#isClosed = true
    this.#flush()
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  async #onBack(): Promise<void> {
    this.#hears = await this.prove()
    this.#provenAtMs = uptimeMs()
    if (this.#isClosed) return
    this.#say(LOST)
    this.#receiver?.onGap()
  }

  /** While nothing is received, listeners are asked to read again and again. */
  async #look(): Promise<void> {
    if (!this.#hears) this.#receiver?.onGap()
    if (uptimeMs() - this.#provenAtMs < this.#proveMs) return
    this.#provenAtMs = uptimeMs()
    this.#hears = await this.prove()
  }

  #flush(): void {
    if (this.#leaving !== null) clearImmediate(this.#leaving)
    this.#leaving = null
    if (this.#batch.isEmpty) return
    // Nothing is kept for later: when the connection is back, the others learn that something was lost.
    if (!this.#line.isUp) {
      this.#batch.take()
      return
    }
    let { hasLost } = this.#batch
    // Another server, with another limit, may have been connected to since the last time.
    for (const lines of this.#batch.take(Math.min(MAX_PAYLOAD_BYTES, this.#line.maxPayloadBytes))) {
      if (this.#say(lines)) continue
      hasLost = true
      this.#log.warn(
        { bytes: lines.length },
        'notices could not be sent through NATS; other processes are told to look',
      )
    }
    if (hasLost) this.#say(LOST)
  }

  #say(lines: string): boolean {
    return this.#line.say(SUBJECT, Buffer.from(lines))
  }

  #hear(data: Uint8Array, sender: string): void {
    for (const line of Buffer.from(data).toString().split('\n')) {
      if (line.startsWith(PROOF)) this.#proofs.get(line.slice(PROOF.length))?.()
      else if (sender === this.#self) continue
      else if (line === LOST) this.#receiver?.onGap()
      else this.#receiver?.onNotice({ line, bytes: null }, sender)
    }
  }
}

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

/**
 * Live links as messages between two processes through NATS, so that they need not dial each other. A message names the link and
 * its number in it: core NATS may lose messages, and a link in which one is missing is closed, so that its reader
 * comes back for what it lacks.
 */
class NatsTransport implements Transport {
  readonly maxFrameBytes: number
  readonly #line: NatsLine
  readonly #links = new Map<string, Link>()
  #open: Parameters<Transport['accept']>[0] | null = null

  constructor(line: NatsLine, self: string) {
    this.#line = line
    this.maxFrameBytes = Math.min(MAX_FRAME_BYTES, line.maxPayloadBytes - HEAD_BYTES - 16)
    line.hear(`link.${self}`, (data, from) => {
      const message = readMessage(data)
      if (message !== null) this.#take(message, from)
    })
    line.watch({
      onAway: () => {
        for (const id of [...this.#links.keys()]) this.#forget(id)
      },
      onBack() {},
    })
  }

  reaches(): boolean {
    return true
  }

  accept(opened: (channel: Channel, from: string) => ChannelEvents): void {
    this.#open = opened
  }

  async dial(
    { id: peer }: Parameters<Transport['dial']>[0],
    events: ChannelEvents,
    signal: AbortSignal,
  ): Promise<Channel> {
    const id = newUuidV4()
    const link = this.#begin(id, peer)
    try {
      await new Promise<void>((resolve, reject) => {
        link.onTaken = resolve
        const giveUp = () => reject(new Error('the other process does not answer'))
        link.events = { onFrame() {}, onClosed: giveUp }
        if (!this.#say(peer, id, 'dial')) giveUp()
        signal.addEventListener('abort', giveUp, { once: true })
      })
    } catch (error) {
      this.#links.delete(id)
      throw error
    }
    link.events = events
    return link.channel
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { channel } of [...this.#links.values()]) channel.close()
  }

  #say(to: string, link: string, kind: Message['kind'], number = 0, frame?: Uint8Array): boolean {
    const head = Buffer.from(`${link} ${kind} ${number}\n`)
    return this.#line.say(`link.${to}`, frame === undefined ? head : Buffer.concat([head, frame]))
  }

  #forget(id: string): void {
    const link = this.#links.get(id)
    this.#links.delete(id)
    link?.events?.onClosed()
  }

  #begin(id: string, peer: string): Link {
    const link: Link = {
      peer,
      events: null,
      onTaken: null,
      sent: 0,
      received: 0,
      channel: {
        send: (frame) => {
          if (this.#links.has(id) && !this.#say(peer, id, 'frame', ++link.sent, frame)) link.channel.close()
        },
        close: () => {
          if (!this.#links.has(id)) return
          this.#say(peer, id, 'end')
          this.#forget(id)
        },
      },
    }
    this.#links.set(id, link)
    return link
  }

  #take({ link: id, kind, number, frame }: Message, from: string): void {
    const link = this.#links.get(id)
    if (kind === 'dial' && link === undefined && this.#open !== null) {
      const taken = this.#begin(id, from)
      taken.events = this.#open(taken.channel, from)
      this.#say(from, id, 'take')
    } else if (link === undefined || link.peer !== from) {
      // A link of before this process started, or before the connection was lost.
      if (kind === 'frame') this.#say(from, id, 'end')
    } else if (kind === 'take') link.onTaken?.()
    else if (kind === 'end') this.#forget(id)
    else if (number !== ++link.received) link.channel.close()
    else link.events?.onFrame(frame)
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
