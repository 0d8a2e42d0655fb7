/** A PNG that fades from one colour to another; the seed chooses both. */
import { crc32, deflateSync } from 'node:zlib'
import { writeChunks } from '../../../../lib/files/png-chunks.ts'

const RGB = 2
const BYTES_PER_PIXEL = 3

interface PictureOptions {
  readonly width: number
  readonly height: number
  readonly seed: number
}

export function drawPicture({ width, height, seed }: PictureOptions): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, RGB, 0, 0, 0], 8)
  const png = writeChunks([
    { type: 'IHDR', body: head },
    { type: 'IDAT', body: deflateSync(pixels(width, height, seed)) },
    { type: 'IEND', body: new Uint8Array(0) },
  ])
  return Buffer.from(png.buffer)
}

function pixels(width: number, height: number, seed: number): Buffer {
  const stride = 1 + width * BYTES_PER_PIXEL
  const rows = Buffer.alloc(stride * height)
  const from = colourOf(seed)
  const to = colourOf(seed + 1)
  for (let y = 0; y < height; y++) {
    const share = height === 1 ? 0 : y / (height - 1)
    const row = from.map((value, index) => Math.round(value + (to[index] - value) * share))
    for (let x = 0; x < width; x++) rows.set(row, y * stride + 1 + x * BYTES_PER_PIXEL)
  }
  return rows
}

function colourOf(seed: number): number[] {
  const mixed = crc32(Buffer.from(String(seed)))
  return [mixed & 0xff, (mixed >>> 8) & 0xff, (mixed >>> 16) & 0xff]
}
