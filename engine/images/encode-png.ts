/** One image of a batch as an 8-bit PNG file with text chunks. */
import { NodeError } from '../node/node-error.ts'
import type { ImageView } from '../tensor/tensor.ts'
import type { PngText } from './png-text.ts'
import { type PngPicture, writePng } from './write-png.ts'

export interface PngOptions {
  /** Which image of the batch. */
  readonly index: number
  /** zlib's level, 0 to 9. */
  readonly level: number
  readonly texts: PngText
  checkpoint(): void
}

const FLOAT_BYTES = 4

export async function encodePng(view: ImageView, options: PngOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height, channels, data } = view
  if (channels !== 3 && channels !== 4) {
    throw new NodeError('TypeError', `Cannot handle this data type: (1, 1, ${channels}), |u1`)
  }
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
