/** An animated WebP put together from still ones, each with what changed since the frame before it; it loops forever. */
import type { Part } from './changed-part.ts'
import { extendedHeader, joinChunks, type RiffChunk, readRiff, WEBP_FLAGS, writeRiff } from './riff.ts'

export interface WebpFrame {
  /** A WebP file as large as the part. */
  readonly still: Uint8Array
  /** Where it goes; left and top are even. */
  readonly part: Part
  readonly ms: number
  /** Its transparent pixels leave what is below them; otherwise the whole part is replaced. */
  readonly isBlended: boolean
}

interface WebpCanvas {
  readonly width: number
  readonly height: number
  readonly hasAlpha: boolean
}

export const MAX_FRAME_MS = 0xff_ff_ff

const NO_BLENDING = 0x02
const FRAME_HEAD_BYTES = 16
/** The chunks of a still that hold its pixels. */
const PIXELS = ['ALPH', 'VP8 ', 'VP8L']

export function assembleWebp(frames: readonly WebpFrame[], canvas: WebpCanvas): Uint8Array {
  // A single frame is a still picture.
  if (frames.length === 1) return frames[0].still
  const flags = WEBP_FLAGS.animation | (canvas.hasAlpha ? WEBP_FLAGS.alpha : 0)
  const loopsForever = new Uint8Array(6)
  return writeRiff([extendedHeader(canvas, flags), { id: 'ANIM', body: loopsForever }, ...frames.map(frameChunk)])
}

function frameChunk({ still, part, ms, isBlended }: WebpFrame): RiffChunk {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  head.writeUIntLE(part.left / 2, 0, 3)
  head.writeUIntLE(part.top / 2, 3, 3)
  head.writeUIntLE(part.width - 1, 6, 3)
  head.writeUIntLE(part.height - 1, 9, 3)
  head.writeUIntLE(ms, 12, 3)
  head[15] = isBlended ? 0 : NO_BLENDING
  const pixels = joinChunks(readRiff(still).filter(({ id }) => PIXELS.includes(id)))
  return { id: 'ANMF', body: Buffer.concat([head, pixels]) }
}
