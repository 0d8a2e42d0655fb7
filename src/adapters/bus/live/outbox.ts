/**
 * What waits to be sent to one process. Notices of one job leave in their order; jobs take turns, so that a large picture of one
 * does not hold up the others. The reader acknowledges what it has received, and at most one window is under way. A reader that is
 * too slow loses previews first, the oldest before the newer ones, then steps. Other events are never skipped: instead the link is
 * closed, and the reader reconnects for what it missed.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { EncodedNotice } from '../../../domain/events/notice-lines.ts'
import type { ToldNotice } from './told-notice.ts'

export interface OutboxBounds {
  /** Bytes under way that the reader has not taken yet. */
  readonly windowBytes: number
  /** Bytes that wait, pictures that are results apart. */
  readonly maxWaitingBytes: number
  /** The same for pictures that are results. */
  readonly maxPictureBytes: number
  /** The largest frame; what is larger goes in pieces. */
  readonly pieceBytes: number
  /** The pause between two previews of a job, in the long run, and how many may come at once after a rest. */
  readonly previewEveryMs: number
  readonly previewBurst: number
}

export const OUTBOX_BOUNDS: OutboxBounds = {
  windowBytes: 4 * 1024 * 1024,
  maxWaitingBytes: 4 * 1024 * 1024,
  maxPictureBytes: 256 * 1024 * 1024,
  pieceBytes: 256 * 1024,
  previewEveryMs: 100,
  previewBurst: 8,
}

interface OutboxDeps {
  readonly bounds: OutboxBounds
  readonly now: () => number
  send(frame: Uint8Array): void
  /** The reader is too slow for what must not be left out. */
  onOverflow(): void
  onPreviewDropped(): void
}

interface Waiting {
  readonly told: ToldNotice
  readonly bytes: number
  /** Of one that goes in pieces, once it has begun. */
  begun: { readonly stream: number; readonly head: Buffer; sent: number } | null
}

// Room for a frame's own words around a notice.
const FRAME_HEAD_BYTES = 1024
const MAX_PACED_JOBS = 1000

export class Outbox {
  readonly #deps: OutboxDeps
  /** By job; whose turn it is stands first. */
  readonly #queues = new Map<string, Waiting[]>()
  /** Previews whose time has not come. */
  readonly #paced = new Map<string, { readonly told: ToldNotice; readonly timer: NodeJS.Timeout }>()
  /** By job, until when its previews have been given out: each takes its pause. */
  readonly #previewsUntilMs = new BoundedMap<string, number>(MAX_PACED_JOBS)
  #waitingBytes = 0
  #pictureBytes = 0
  #sentBytes = 0
  #takenBytes = 0
  #streams = 0
  #isClosed = false

  constructor(deps: OutboxDeps) {
    this.#deps = deps
  }

  push(told: ToldNotice): void {
    if (this.#isClosed || told.encoded === null) return
    const { jobId } = told
    if (told.weight === 'preview') {
      if (this.#withdraw(jobId, 'preview')) this.#deps.onPreviewDropped()
      const { previewEveryMs, previewBurst } = this.#deps.bounds
      const untilMs = this.#previewsUntilMs.get(jobId) ?? Number.NEGATIVE_INFINITY
      const pauseMs = untilMs - (previewBurst - 1) * previewEveryMs - this.#deps.now()
      if (pauseMs > 0) {
        this.#pace(told, pauseMs)
        return
      }
    } else if (told.key !== null) this.#withdraw(jobId, told.key)
    // A step may overtake a preview that waits for its time; what ends or begins something may not.
    else this.#endPause(jobId)
    this.#enqueue(told)
    this.#pump()
  }

  /** How much the reader has taken since the link began. */
  taken(bytes: number): void {
    this.#takenBytes = Math.min(this.#sentBytes, Math.max(this.#takenBytes, bytes))
    this.#pump()
  }

  /** Drops what waits of this job; an event that is partly sent is completed. */
  forget(jobId: string): void {
    clearTimeout(this.#paced.get(jobId)?.timer)
    this.#paced.delete(jobId)
    while (this.#remove(jobId, () => true));
  }

  close(): void {
    this.#isClosed = true
    for (const { timer } of this.#paced.values()) clearTimeout(timer)
    this.#paced.clear()
    this.#queues.clear()
  }

  #pace(told: ToldNotice, pauseMs: number): void {
    const { jobId } = told
    const timer = setTimeout(() => {
      this.#endPause(jobId)
      this.#pump()
    }, pauseMs)
    this.#paced.set(jobId, { told, timer })
  }

  #endPause(jobId: string): void {
    const paced = this.#paced.get(jobId)
    if (paced === undefined) return
    clearTimeout(paced.timer)
    this.#paced.delete(jobId)
    this.#enqueue(paced.told)
  }

  /** Takes the one back that the next one replaces, unless it has left already. */
  #withdraw(jobId: string, key: string): boolean {
    const paced = this.#paced.get(jobId)
    if (paced !== undefined && paced.told.key === key) {
      clearTimeout(paced.timer)
      this.#paced.delete(jobId)
      return true
    }
    return this.#remove(jobId, (waiting) => waiting.told.key === key)
  }

  #enqueue(told: ToldNotice): void {
    const encoded = told.encoded
    if (encoded === null) return
    const bytes = Buffer.byteLength(encoded.line) + (encoded.bytes?.byteLength ?? 0) + FRAME_HEAD_BYTES
    if (told.weight === 'preview') {
      const untilMs = this.#previewsUntilMs.get(told.jobId) ?? Number.NEGATIVE_INFINITY
      this.#previewsUntilMs.set(told.jobId, Math.max(untilMs, this.#deps.now()) + this.#deps.bounds.previewEveryMs)
    }
    const queue = this.#queues.get(told.jobId) ?? []
    queue.push({ told, bytes, begun: null })
    this.#queues.set(told.jobId, queue)
    this.#count(told, bytes)
    this.#shed()
  }

  #count({ weight }: ToldNotice, bytes: number): void {
    if (weight === 'picture') this.#pictureBytes += bytes
    else this.#waitingBytes += bytes
  }

  #shed(): void {
    const { maxWaitingBytes, maxPictureBytes } = this.#deps.bounds
    // A reader that has received everything so far is sent the next one at once, however large it is.
    if (this.#sentBytes === this.#takenBytes) return
    for (const weight of ['preview', 'step'] as const) {
      if (this.#waitingBytes <= maxWaitingBytes) break
      for (const jobId of [...this.#queues.keys()]) {
        while (this.#waitingBytes > maxWaitingBytes && this.#remove(jobId, ({ told }) => told.weight === weight))
          if (weight === 'preview') this.#deps.onPreviewDropped()
      }
    }
    if (this.#waitingBytes <= maxWaitingBytes && this.#pictureBytes <= maxPictureBytes) return
    this.close()
    this.#deps.onOverflow()
  }

  /** Removes the oldest of a job that is like this and has not begun to leave. */
  #remove(jobId: string, isLike: (waiting: Waiting) => boolean): boolean {
    const queue = this.#queues.get(jobId)
    const at = queue?.findIndex((waiting) => waiting.begun === null && isLike(waiting)) ?? -1
    if (queue === undefined || at < 0) return false
    const [{ told, bytes }] = queue.splice(at, 1)
    this.#count(told, -bytes)
    if (queue.length === 0) this.#queues.delete(jobId)
    return true
  }

  #pump(): void {
    while (!this.#isClosed && this.#sentBytes - this.#takenBytes < this.#deps.bounds.windowBytes) {
      const [next] = this.#queues
      if (next === undefined) return
      const [jobId, queue] = next
      this.#queues.delete(jobId)
      if (this.#sendSome(queue[0])) queue.shift()
      if (queue.length > 0) this.#queues.set(jobId, queue)
    }
  }

  /** True once it has left as a whole. */
  #sendSome(waiting: Waiting): boolean {
    const { told, bytes } = waiting
    const { encoded } = told
    const { pieceBytes } = this.#deps.bounds
    if (encoded === null) return true
    const picture = encoded.bytes ?? Buffer.alloc(0)
    const head = waiting.begun?.head ?? toToldHead(told.seq, this.#deps.now() - told.atMs, encoded)
    const size = head.byteLength + picture.byteLength
    if (waiting.begun === null && size > pieceBytes) {
      waiting.begun = { stream: ++this.#streams, head, sent: 0 }
      this.#send(toLarge(waiting.begun.stream, size))
    }
    const { begun } = waiting
    if (begun === null) this.#send(encoded.bytes === null ? head : Buffer.concat([head, picture]))
    else {
      const end = Math.min(size, begun.sent + pieceBytes)
      const fromPicture = (at: number) => Math.max(0, at - head.byteLength)
      this.#send(
        toPiece(begun.stream, [
          head.subarray(begun.sent, end),
          picture.subarray(fromPicture(begun.sent), fromPicture(end)),
        ]),
      )
      begun.sent = end
      if (end < size) return false
    }
    this.#count(told, -bytes)
    return true
  }

  #send(frame: Uint8Array): void {
    this.#sentBytes += frame.byteLength
    this.#deps.send(frame)
  }
}

type WatcherFrame =
  | { readonly kind: 'want' | 'leave'; readonly topic: string }
  | { readonly kind: 'taken'; readonly bytes: number }
  | { readonly kind: 'ping' }

export type SourceFrame =
  | { readonly kind: 'heard'; readonly topic: string }
  | { readonly kind: 'told'; readonly seq: number; readonly ageMs: number; readonly notice: EncodedNotice }
  | { readonly kind: 'large'; readonly stream: number; readonly bytes: number }
  | { readonly kind: 'piece'; readonly stream: number; readonly data: Uint8Array }
  | { readonly kind: 'pong' }

/**
 * The language of a link between two processes. The watcher asks for topics and says how much it has taken; the source tells. A
 * frame is a line of text, behind whose end the bytes of a picture may stand; one that is too large for its way goes in pieces.
 *
 *   watcher:  s <topic>      wants to hear it          source:  o <topic>              from here on it is heard
 *             u <topic>      no longer                          e <seq> <age> <line>   a notice, told <age> ms ago
 *             k <bytes>      has taken so much, in all          p <stream> <bytes>     a frame in pieces follows
 *             ?              are you there?                     !                      yes
 *
 * A piece begins with a zero byte and the number of its stream. A frame that is not understood is passed over: it may come from a
 * newer version of this program.
 */
export const PING = Buffer.from('?')
export const PONG = Buffer.from('!')
const MAX_TOPIC_LENGTH = 2500
const PIECE_HEAD_BYTES = 5
const LINE_END = 10

export const toWant = (topic: string) => Buffer.from(`s ${toTopicField(topic)}`)
export const toLeave = (topic: string) => Buffer.from(`u ${toTopicField(topic)}`)
export const toTaken = (bytes: number) => Buffer.from(`k ${bytes}`)
export const toHeard = (topic: string) => Buffer.from(`o ${toTopicField(topic)}`)
const toLarge = (stream: number, bytes: number) => Buffer.from(`p ${stream} ${bytes}`)

/** What stands before the bytes of a notice that has any, and the whole frame of one that has none. */
function toToldHead(seq: number, ageMs: number, { line, bytes }: EncodedNotice): Buffer {
  return Buffer.from(`e ${seq} ${Math.max(0, Math.floor(ageMs))} ${line}${bytes === null ? '' : '\n'}`)
}

function toPiece(stream: number, parts: readonly Uint8Array[]): Buffer {
  const head = Buffer.alloc(PIECE_HEAD_BYTES)
  head.writeUInt32BE(stream, 1)
  return Buffer.concat([head, ...parts])
}

export function readWatcherFrame(frame: Uint8Array): WatcherFrame | null {
  if (frame.byteLength > MAX_TOPIC_LENGTH) return null
  const text = toBuffer(frame).toString()
  const [letter, rest] = [text.slice(0, 1), text.slice(2)]
  if (letter === '?') return { kind: 'ping' }
  if (letter === 'k') {
    const bytes = readCount(rest)
    return bytes === null ? null : { kind: 'taken', bytes }
  }
  const topic = letter === 's' || letter === 'u' ? readTopicField(rest) : null
  return topic === null ? null : { kind: letter === 's' ? 'want' : 'leave', topic }
}

export function readSourceFrame(frame: Uint8Array): SourceFrame | null {
  const bytes = toBuffer(frame)
  switch (bytes[0]) {
    case 0x00:
      if (bytes.byteLength < PIECE_HEAD_BYTES) return null
      return { kind: 'piece', stream: bytes.readUInt32BE(1), data: bytes.subarray(PIECE_HEAD_BYTES) }
    case 0x21:
      return { kind: 'pong' }
    case 0x65:
      return readTold(bytes)
    case 0x6f: {
      const topic = readTopicField(bytes.toString('utf8', 2))
      return topic === null ? null : { kind: 'heard', topic }
    }
    case 0x70: {
      const [stream, size] = bytes.toString('utf8', 2, 60).split(' ').map(readCount)
      return stream == null || size == null ? null : { kind: 'large', stream, bytes: size }
    }
  }
  return null
}

function readTold(frame: Buffer): SourceFrame | null {
  const lineEnd = frame.indexOf(LINE_END)
  const text = frame.toString('utf8', 2, lineEnd < 0 ? frame.byteLength : lineEnd)
  const afterSeq = text.indexOf(' ')
  const afterAge = text.indexOf(' ', afterSeq + 1)
  const seq = readCount(text.slice(0, afterSeq))
  const ageMs = readCount(text.slice(afterSeq + 1, afterAge))
  if (afterSeq < 0 || afterAge < 0 || seq === null || ageMs === null) return null
  const bytes = lineEnd < 0 ? null : frame.subarray(lineEnd + 1)
  return { kind: 'told', seq, ageMs, notice: { line: text.slice(afterAge + 1), bytes } }
}

function toTopicField(topic: string): string {
  return `${topic.slice(0, 1)} ${encodeURIComponent(topic.slice(2))}`
}

function readTopicField(text: string): string | null {
  if (!/^[ja] ./.test(text)) return null
  try {
    return `${text.slice(0, 1)} ${decodeURIComponent(text.slice(2))}`
  } catch {
    return null
  }
}

function readCount(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return null
  return Number(text)
}

function toBuffer(frame: Uint8Array): Buffer {
  return Buffer.isBuffer(frame) ? frame : Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
}
