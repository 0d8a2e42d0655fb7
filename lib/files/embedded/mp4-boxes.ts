/** The boxes that an MP4 or MOV is made of: each has a length, a type and content, which may be boxes again. */
import type { BoundedReader } from './byte-source.ts'

export interface Box {
  readonly type: string
  /** Of its content. */
  readonly start: number
  readonly end: number
}

export const HEAD_BYTES = 8
const LARGE_HEAD_BYTES = 16

export function* boxes(reader: BoundedReader, start: number, end: number): Generator<Box> {
  for (let at = start; at + HEAD_BYTES <= end; ) {
    const head = reader.read(at, LARGE_HEAD_BYTES)
    if (head.length < HEAD_BYTES) return
    const short = head.readUInt32BE(0)
    const headBytes = short === 1 ? LARGE_HEAD_BYTES : HEAD_BYTES
    // 1: the length follows the type; 0: up to the end of the file.
    const size = short === 1 ? Number(head.readBigUInt64BE(8)) : short === 0 ? end - at : short
    if (size < headBytes) return
    yield { type: head.toString('latin1', 4, 8), start: at + headBytes, end: Math.min(end, at + size) }
    at += size
  }
}

export function findBox(reader: BoundedReader, parent: Omit<Box, 'type'>, type: string): Box | undefined {
  for (const box of boxes(reader, parent.start, parent.end)) if (box.type === type) return box
  return undefined
}
