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
import type { EncodedNotice } from '../../../domain/events/notice-lines.ts'

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

export const PING = Buffer.from('?')
export const PONG = Buffer.from('!')
const MAX_TOPIC_LENGTH = 2500
const PIECE_HEAD_BYTES = 5
const LINE_END = 10

export const toWant = (topic: string) => Buffer.from(`s ${toTopicField(topic)}`)
export const toLeave = (topic: string) => Buffer.from(`u ${toTopicField(topic)}`)
export const toTaken = (bytes: number) => Buffer.from(`k ${bytes}`)
export const toHeard = (topic: string) => Buffer.from(`o ${toTopicField(topic)}`)
export const toLarge = (stream: number, bytes: number) => Buffer.from(`p ${stream} ${bytes}`)

/** What stands before the bytes of a notice that has any, and the whole frame of one that has none. */
export function toToldHead(seq: number, ageMs: number, { line, bytes }: EncodedNotice): Buffer {
  return Buffer.from(`e ${seq} ${Math.max(0, Math.floor(ageMs))} ${line}${bytes === null ? '' : '\n'}`)
}

export function toPiece(stream: number, parts: readonly Uint8Array[]): Buffer {
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
