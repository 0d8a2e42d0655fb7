/** An animated PNG put together from still ones of one size; it loops forever. */

import { type PngChunk, readChunks, writeChunks } from '../../lib/files/png-chunks.ts'
import type { FileTags } from '../files/file-tags.ts'
import { NodeError } from '../node/node-error.ts'

interface ApngOptions {
  /** How long every frame is shown. */
  readonly frameMs: number
  /** What the file remembers, in private chunks at its end. */
  readonly texts: FileTags
}

const MAX_SHORT = 65_535
const LATIN1 = /^[\x20-\xff]+$/

/** Time as a fraction of two short numbers: in milliseconds, or coarser when those do not fit. */
function delayOf(frameMs: number): { top: number; bottom: number } {
  let [top, bottom] = [frameMs, 1000]
  while (top > MAX_SHORT) [top, bottom] = [Math.round(top / 10), bottom / 10]
  return { top, bottom }
}

function animationControl(frames: number): PngChunk {
  const body = Buffer.alloc(8)
  body.writeUInt32BE(frames, 0)
  return { type: 'acTL', body }
}

function frameControl(sequence: number, header: Uint8Array, frameMs: number): PngChunk {
  const { top, bottom } = delayOf(frameMs)
  const body = Buffer.alloc(26)
  body.writeUInt32BE(sequence, 0)
  // Width and height stand first in the header; offset, disposal and blending stay 0: each frame replaces the last.
  body.set(header.subarray(0, 8), 4)
  body.writeUInt16BE(top, 20)
  body.writeUInt16BE(bottom, 22)
  return { type: 'fcTL', body }
}

function frameData(sequence: number, data: Uint8Array): PngChunk {
  const body = Buffer.alloc(data.length + 4)
  body.writeUInt32BE(sequence, 0)
  body.set(data, 4)
  return { type: 'fdAT', body }
}

function textChunk([key, value]: FileTags[number]): PngChunk {
  if (!LATIN1.test(key)) {
    throw new NodeError('ValueError', 'a key of extra_pnginfo cannot be written into a PNG: use Latin characters')
  }
  return { type: 'comf', body: Buffer.from(`${key}\0${value}`, 'latin1') }
}

const dataOf = (chunks: readonly PngChunk[]) => chunks.filter(({ type }) => type === 'IDAT').map(({ body }) => body)

/** `stills` are PNG files; the first one is also what a reader without animation shows. */
export function assembleApng(stills: readonly Uint8Array[], { frameMs, texts }: ApngOptions): Uint8Array<ArrayBuffer> {
  const frames = stills.map(readChunks)
  const header = frames[0][0]
  const chunks: PngChunk[] = [header]
  // A single frame is a still picture.
  if (frames.length > 1) chunks.push(animationControl(frames.length))
  let sequence = 0
  frames.forEach((frame, index) => {
    if (frames.length > 1) chunks.push(frameControl(sequence++, header.body, frameMs))
    for (const data of dataOf(frame)) {
      chunks.push(index === 0 ? { type: 'IDAT', body: data } : frameData(sequence++, data))
    }
  })
  return writeChunks([...chunks, ...texts.map(textChunk), { type: 'IEND', body: new Uint8Array(0) }])
}
