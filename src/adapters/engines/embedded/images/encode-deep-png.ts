/** One image of a batch as a grey or coloured PNG of 8 or 16 bit. */
import sharp from 'sharp'
import { NodeError } from '../node-error.ts'
import { inBlocks } from '../tensor/map-pixels.ts'
import type { ImageView } from '../tensor/tensor.ts'
import { insertPngText, type PngText } from './png-text.ts'

export interface DeepPngOptions {
  readonly index: number
  readonly bits: 8 | 16
  readonly texts: PngText
  checkpoint(): void
}

const LEVEL = 4

/** `trunc(clip(x·scale))`, the product in single precision. */
function toIntegers({ data, width, height, channels }: ImageView, { index, bits, checkpoint }: DeepPngOptions) {
  const count = width * height * channels
  const scale = 2 ** bits - 1
  const first = index * count
  const pixels = bits === 8 ? new Uint8Array(count) : new Uint16Array(count)
  inBlocks(count, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) {
      const scaled = Math.fround(scale * data[first + i])
      // NaN compares false both times and becomes 0.
      pixels[i] = scaled >= scale ? scale : scaled > 0 ? scaled : 0
    }
  })
  return pixels
}

export async function encodeDeepPng(view: ImageView, options: DeepPngOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height, channels } = view
  if (channels !== 1 && channels !== 3 && channels !== 4) {
    throw new NodeError('ValueError', `a PNG holds 1, 3 or 4 channels, not ${channels}`)
  }
  if (width === 0 || height === 0) throw new NodeError('ValueError', 'an image without pixels cannot be saved')
  const isGrey = channels === 1
  const space = options.bits === 16 ? (isGrey ? 'grey16' : 'rgb16') : isGrey ? 'b-w' : 'srgb'
  const pixels = toIntegers(view, options)
  const image = sharp(pixels, { raw: { width, height, channels }, limitInputPixels: false }).toColourspace(space)
  const png = await image.png({ compressionLevel: LEVEL }).toBuffer()
  options.checkpoint()
  return insertPngText(png, options.texts)
}
