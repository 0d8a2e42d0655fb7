/** One image of a batch as an 8-bit PNG file with text chunks. */
import sharp from 'sharp'
import { NodeError } from '../node-error.ts'
import { toBytes } from '../tensor/bytes.ts'
import { inBlocks } from '../tensor/map-pixels.ts'
import type { ImageView } from '../tensor/tensor.ts'
import { insertPngText, type PngText } from './png-text.ts'

export interface PngOptions {
  /** Which image of the batch. */
  readonly index: number
  /** zlib's level, 0 to 9. */
  readonly level: number
  readonly texts: PngText
  checkpoint(): void
}

export async function encodePng(view: ImageView, options: PngOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height, channels, data } = view
  if (channels !== 3 && channels !== 4) {
    throw new NodeError('TypeError', `Cannot handle this data type: (1, 1, ${channels}), |u1`)
  }
  if (width === 0 || height === 0) throw new NodeError('ValueError', 'an image without pixels cannot be saved')
  const count = width * height * channels
  const first = options.index * count
  const pixels = new Uint8Array(count)
  inBlocks(count, options.checkpoint, (from, to) =>
    toBytes(data, pixels, { from: first + from, to: from, count: to - from }),
  )
  const image = sharp(pixels, { raw: { width, height, channels }, limitInputPixels: false })
  const png = await image.png({ compressionLevel: options.level }).toBuffer()
  options.checkpoint()
  return insertPngText(png, options.texts)
}
