/** One image of a batch as a PNG file with text chunks: of 8 bit by the fast kernels, or grey or coloured of 8 or 16 bit. */

import { type PngChunk, readChunks, writeChunks } from '../../lib/files/png-chunks.ts'
import type { FileTags } from '../files/output-name.ts'
import { NodeError, unknownPixels } from '../node/node-error.ts'
import type { ImageView } from '../tensor/tensor.ts'
import { type PngPicture, writePng } from './write-png.ts'

interface PngOptions {
  /** Which image of the batch. */
  readonly index: number
  /** zlib's level, 0 to 9. */
  readonly level: number
  readonly texts: FileTags
  checkpoint(): void
}

const FLOAT_BYTES = 4

export async function encodePng(view: ImageView, options: PngOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height, channels, data } = view
  if (channels !== 3 && channels !== 4) throw unknownPixels(channels)
  if (width === 0 || height === 0) throw new NodeError('ValueError', 'an image without pixels cannot be saved')
  const rowBytes = width * channels
  const first = options.index * height * rowBytes
  const picture = {
    ...({ width, height, channels, bits: 8, rowBytes, pixelBytes: channels } as const),
    scratchBytes: rowBytes * FLOAT_BYTES,
    fill: ({ run, floats }, y, { target, scratch }) => {
      const from = first + y * rowBytes
      floats.set(data.subarray(from, from + rowBytes), scratch / FLOAT_BYTES)
      run.packFloats(target, scratch, scratch + rowBytes * FLOAT_BYTES)
    },
  } satisfies PngPicture
  return writePng(picture, options)
}

interface DeepPngOptions {
  readonly index: number
  readonly bits: 8 | 16
  readonly texts: FileTags
  checkpoint(): void
}

const LEVEL = 4

/** `trunc(clip(x·scale))`, the product in single precision; high byte first. */
function writeRow(row: Float32Array, target: Uint8Array, bits: 8 | 16): void {
  const scale = 2 ** bits - 1
  for (let i = 0, at = 0; i < row.length; i++) {
    const scaled = Math.fround(scale * row[i])
    // NaN compares false both times and becomes 0.
    const level = scaled >= scale ? scale : scaled > 0 ? scaled | 0 : 0
    if (bits === 16) target[at++] = level >> 8
    target[at++] = level & 0xff
  }
}

export async function encodeDeepPng(view: ImageView, options: DeepPngOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height, channels, data } = view
  const { index, bits } = options
  if (channels !== 1 && channels !== 3 && channels !== 4) {
    throw new NodeError('ValueError', `a PNG holds 1, 3 or 4 channels, not ${channels}`)
  }
  if (width === 0 || height === 0) throw new NodeError('ValueError', 'an image without pixels cannot be saved')
  const length = width * channels
  const first = index * height * length
  const pixelBytes = (channels * bits) / 8
  const picture: PngPicture = {
    ...{ width, height, channels, bits, pixelBytes },
    rowBytes: width * pixelBytes,
    scratchBytes: 0,
    fill({ bytes }, y, { target }) {
      writeRow(data.subarray(first + y * length, first + (y + 1) * length), bytes.subarray(target), bits)
    },
  }
  return writePng(picture, { ...options, level: LEVEL })
}

// Text chunks of a PNG: `tEXt`, right after the header, in the order given. Values are ASCII by construction (JSON with
// escapes), so the richer chunk types are never needed.

// An animated PNG put together from still ones of one size; it loops forever.

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

/** What of a picture differs from the one before it, so that an animation need not repeat the rest. */

export interface Part {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

interface PixelLayout {
  readonly width: number
  readonly height: number
  readonly channels: number
}

/**
 * The smallest part with every pixel that differs, moved out to an even left and top, which is where a frame of a WebP can begin.
 * null: the pictures are equal.
 */
export function changedPart(before: Uint8Array, after: Uint8Array, layout: PixelLayout): Part | null {
  const { height, channels } = layout
  const rowBytes = layout.width * channels
  const isSame = (y: number) =>
    Buffer.compare(
      before.subarray(y * rowBytes, (y + 1) * rowBytes),
      after.subarray(y * rowBytes, (y + 1) * rowBytes),
    ) === 0
  let top = 0
  while (top < height && isSame(top)) top++
  if (top === height) return null
  let bottom = height - 1
  while (isSame(bottom)) bottom--
  let first = rowBytes
  let last = 0
  for (let y = top; y <= bottom; y++) {
    const row = y * rowBytes
    let at = 0
    while (at < first && before[row + at] === after[row + at]) at++
    first = at
    at = rowBytes - 1
    while (at > last && before[row + at] === after[row + at]) at--
    last = at
  }
  const left = toEven(Math.floor(first / channels))
  const right = Math.floor(last / channels)
  return { left, top: toEven(top), width: right - left + 1, height: bottom - toEven(top) + 1 }
}

const toEven = (value: number) => value - (value % 2)

/** The pixels of a part, row by row. */
export function cutPart(pixels: Uint8Array, part: Part, { width, channels }: PixelLayout): Uint8Array {
  const rowBytes = part.width * channels
  const cut = new Uint8Array(rowBytes * part.height)
  for (let y = 0; y < part.height; y++) {
    const from = ((part.top + y) * width + part.left) * channels
    cut.set(pixels.subarray(from, from + rowBytes), y * rowBytes)
  }
  return cut
}

/** The pixels of a part with an alpha channel: those that did not change are transparent. null: all have changed. */
export function cutChanges(
  before: Uint8Array,
  after: Uint8Array,
  part: Part,
  { width }: PixelLayout,
): Uint8Array | null {
  const cut = new Uint8Array(part.width * part.height * 4)
  let hasUnchanged = false
  for (let y = 0, to = 0; y < part.height; y++) {
    let from = ((part.top + y) * width + part.left) * 3
    for (let x = 0; x < part.width; x++, from += 3, to += 4) {
      const [red, green, blue] = [after[from], after[from + 1], after[from + 2]]
      if (red === before[from] && green === before[from + 1] && blue === before[from + 2]) {
        hasUnchanged = true
        continue
      }
      cut[to] = red
      cut[to + 1] = green
      cut[to + 2] = blue
      cut[to + 3] = 255
    }
  }
  return hasUnchanged ? cut : null
}
