/**
 * A medium between the buses of one test, in place of a network: what one end sends arrives as bytes at every other end, a turn
 * later and in order. It can lose what is sent, as a broken connection does.
 */
import type { Medium } from '../../src/adapters/bus/wire-bus.ts'
import type { EncodedNotice } from '../../src/domain/events/notice-lines.ts'

interface LoopbackEnd extends Medium {
  /** Whatever this end sends or should receive from now on is lost, until it is connected again. */
  cut(): void
  /** Ends the loss; this end is told that there was one. */
  mend(): void
}

export interface Loopback {
  join(): LoopbackEnd
  /** Resolves once everything that was sent has arrived. */
  settle(): Promise<void>
}

interface End {
  receive(frame: Buffer): void
  isCut: boolean
}

export function createLoopback(): Loopback {
  const ends = new Set<End>()
  let arriving: Promise<void> = Promise.resolve()

  function carry(from: End, frame: Buffer): void {
    const others = [...ends].filter((end) => end !== from && !end.isCut)
    if (from.isCut) return
    arriving = arriving.then(() => {
      for (const end of others) end.receive(frame)
    })
  }

  return {
    join() {
      let receiver: Parameters<Medium['connect']>[0] | null = null
      const end: End = { isCut: false, receive: (frame) => receiver?.onNotice(readFrame(frame)) }
      ends.add(end)
      return {
        carries: () => true,
        send: (notice) => carry(end, toFrame(notice)),
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
      }
    },
    async settle() {
      let before: Promise<void>
      do {
        before = arriving
        await before
      } while (before !== arriving)
    },
  }
}

/** The line, and behind a line end the bytes; none: no line end. */
function toFrame({ line, bytes }: EncodedNotice): Buffer {
  return bytes === null ? Buffer.from(line) : Buffer.concat([Buffer.from(`${line}\n`), bytes])
}

function readFrame(frame: Buffer): EncodedNotice {
  const end = frame.indexOf(10)
  if (end < 0) return { line: frame.toString(), bytes: null }
  return { line: frame.subarray(0, end).toString(), bytes: new Uint8Array(frame.subarray(end + 1)) }
}
