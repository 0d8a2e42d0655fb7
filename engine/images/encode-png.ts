/** One image of a batch as a PNG file with text chunks: of 8 bit by the fast kernels, or grey or coloured of 8 or 16 bit. */

import type { FileTags } from '../files/file-tags.ts'
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
