/**
 * A medium between the buses of one test, and the way of their live links, in place of a network: what one end sends arrives as
 * bytes at every other end, a turn later and in order. It can lose what is sent, as a broken connection does.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { silentLog } from '../../../lib/log.ts'
import { LiveLinks } from '../../../src/adapters/bus/live/live-links.ts'
import type { Channel, ChannelEvents, Transport } from '../../../src/adapters/bus/live/told-notice.ts'
import type { Medium } from '../../../src/adapters/bus/wire-bus.ts'
import type { EncodedNotice } from '../../../src/domain/events/notice-lines.ts'

interface LoopbackEnd extends Medium {
  readonly links: LiveLinks
  /** Whatever this end sends or should receive from now on is lost, until it is connected again. */
  cut(): void
  /** Ends the loss; this end is told that there was one. */
  mend(): void
  /** What comes to this end over links is late from now on, and what comes by the medium is not. */
  lag(): void
  catchUp(): void
}

export interface Loopback extends AsyncDisposable {
  join(): LoopbackEnd
  /** Resolves once everything that was sent has arrived. */
  settle(): Promise<void>
}

interface End {
  readonly id: string
  receive(line: Buffer, from: string): void
  open: Parameters<Transport['accept']>[0] | null
  isCut: boolean
  /** What is late; null: nothing is. */
  late: (() => void)[] | null
}

/** `now`: in place of the uptime of the processes. */
export function createLoopback({ now }: { readonly now?: () => number } = {}): Loopback {
  const ends = new Map<string, End>()
  const links: LiveLinks[] = []
  let arriving: Promise<void> = Promise.resolve()

  function arrive(deliver: () => void): void {
    arriving = arriving.then(deliver)
  }

  function carry(from: End, line: Buffer): void {
    const others = [...ends.values()].filter((end) => end !== from && !end.isCut)
    if (from.isCut) return
    arrive(() => {
      for (const end of others) end.receive(line, from.id)
    })
  }

  function createTransport(self: End): Transport {
    return {
      maxFrameBytes: 1024 * 1024,
      reaches: () => true,
      accept(open) {
        self.open = open
      },
      async dial({ id }, events) {
        const other = ends.get(id)
        if (other === undefined || other.open === null) throw new Error('nobody is there')
        const [here, there] = openPipe(self, other, arrive)
        there.connect(other.open(there.channel, self.id))
        here.connect(events)
        return here.channel
      },
      async [Symbol.asyncDispose]() {},
    }
  }

  function join(): LoopbackEnd {
    let receiver: Parameters<Medium['connect']>[0] | null = null
    const id = `end-${ends.size + 1}`
    const end: End = {
      id,
      isCut: false,
      late: null,
      open: null,
      receive: (line, from) => receiver?.onNotice({ line: line.toString(), bytes: null }, from),
    }
    ends.set(id, end)
    const others = () => [...ends.keys()].filter((each) => each !== id)
    const own = new LiveLinks({
      transport: createTransport(end),
      directory: {
        listPeers: async () => others().map((each) => ({ id: each, address: null })),
        // Tests have two ends: a job that is watched at one of them runs at the other.
        findHolders: async (jobIds) => new Map(jobIds.map((jobId) => [jobId, others().slice(0, 1)])),
      },
      log: silentLog,
      ...(now !== undefined && { now }),
    })
    links.push(own)
    return {
      links: own,
      send: ({ line }: EncodedNotice) => carry(end, Buffer.from(line)),
      connect(to) {
        receiver = to
      },
      cut() {
        end.isCut = true
      },
      mend() {
        end.isCut = false
        receiver?.onGap()
      },
      lag() {
        end.late ??= []
      },
      catchUp() {
        for (const deliver of end.late ?? []) arrive(deliver)
        end.late = null
      },
    }
  }

  return {
    join,
    async settle() {
      let before: Promise<void>
      do {
        before = arriving
        await before
        // A link may be about to be opened.
        for (let turns = 0; turns < 5; turns++) await turn()
      } while (before !== arriving)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(links.map((each) => each[Symbol.asyncDispose]()))
    },
  }
}

interface PipeEnd {
  readonly channel: Channel
  connect(events: ChannelEvents): void
}

function openPipe(one: End, other: End, arrive: (deliver: () => void) => void): readonly [PipeEnd, PipeEnd] {
  const events: (ChannelEvents | null)[] = [null, null]
  let isClosed = false
  const close = () => {
    if (isClosed) return
    isClosed = true
    for (const each of events) each?.onClosed()
  }
  const createEnd = (own: 0 | 1): PipeEnd => ({
    channel: {
      send(frame) {
        if (one.isCut || other.isCut) return
        const copy = Buffer.from(frame)
        const deliver = () => (isClosed ? undefined : events[1 - own]?.onFrame(copy))
        const { late } = own === 0 ? other : one
        if (late !== null) late.push(deliver)
        else arrive(deliver)
      },
      close,
    },
    connect(to) {
      events[own] = to
    },
  })
  return [createEnd(0), createEnd(1)]
}
