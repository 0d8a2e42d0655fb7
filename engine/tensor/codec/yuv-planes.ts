/** 8-bit planes as video codecs take them: brightness at full size, colour at half, in studio range (BT.601). */
import { BYTE_TO_FLOAT, byteOf } from '../bytes.ts'

export interface BytePlane {
  readonly width: number
  readonly height: number
  readonly data: Uint8ClampedArray
}

export interface YuvPicture {
  readonly luma: BytePlane
  readonly blueness: BytePlane
  readonly redness: BytePlane
}

interface RgbSource {
  readonly data: Float32Array
  /** Values from one row to the next, and from one pixel to the next. */
  readonly rowStride: number
  readonly channels: number
}

const newPlane = (width: number, height: number): BytePlane => ({
  width,
  height,
  data: new Uint8ClampedArray(width * height),
})

/** Both sides must be even: four pixels share one colour. */
export function toYuv(
  { data, rowStride, channels }: RgbSource,
  { width, height, checkpoint }: { width: number; height: number; checkpoint(): void },
): YuvPicture {
  const luma = newPlane(width, height)
  const blueness = newPlane(width / 2, height / 2)
  const redness = newPlane(width / 2, height / 2)
  for (let y = 0; y < height; y += 2) {
    checkpoint()
    for (let x = 0; x < width; x += 2) {
      let [red, green, blue] = [0, 0, 0]
      for (let corner = 0; corner < 4; corner++) {
        const [px, py] = [x + (corner & 1), y + (corner >> 1)]
        const at = py * rowStride + px * channels
        const [r, g, b] = [byteOf(data[at]), byteOf(data[at + 1]), byteOf(data[at + 2])]
        luma.data[py * width + px] = 16 + 0.256788 * r + 0.504129 * g + 0.097906 * b
        red += r / 4
        green += g / 4
        blue += b / 4
      }
      const at = (y / 2) * blueness.width + x / 2
      blueness.data[at] = 128 - 0.148223 * red - 0.290993 * green + 0.439216 * blue
      redness.data[at] = 128 + 0.439216 * red - 0.367788 * green - 0.071427 * blue
    }
  }
  return { luma, blueness, redness }
}

/** One row of colours at full size, mixed from the nearest samples. */
function colorRow({ data, width, height }: BytePlane, y: number, out: Float32Array): void {
  // Colours lie on the left pixel of a pair and between the two rows of one.
  const down = Math.max(0, Math.min(y / 2 - 0.25, height - 1))
  const top = Math.floor(down)
  const share = down - top
  const above = top * width
  const below = Math.min(top + 1, height - 1) * width
  for (let x = 0; x < width; x++) out[2 * x] = data[above + x] * (1 - share) + data[below + x] * share - 128
  for (let x = 1; x < out.length; x += 2) out[x] = x + 1 < out.length ? (out[x - 1] + out[x + 1]) / 2 : out[x - 1]
}

/** Writes RGB values n/255, row by row. */
export function fromYuv({ luma, blueness, redness }: YuvPicture, out: Float32Array, checkpoint: () => void): void {
  const { width, height } = luma
  const blues = new Float32Array(width)
  const reds = new Float32Array(width)
  const levels = new Uint8ClampedArray(3)
  for (let y = 0, at = 0; y < height; y++) {
    checkpoint()
    colorRow(blueness, y, blues)
    colorRow(redness, y, reds)
    for (let x = 0; x < width; x++, at += 3) {
      const light = 1.164383 * (luma.data[y * width + x] - 16)
      // Clamped bytes do the rounding.
      levels[0] = light + 1.596027 * reds[x]
      levels[1] = light - 0.391762 * blues[x] - 0.812968 * reds[x]
      levels[2] = light + 2.017232 * blues[x]
      out[at] = BYTE_TO_FLOAT[levels[0]]
      out[at + 1] = BYTE_TO_FLOAT[levels[1]]
      out[at + 2] = BYTE_TO_FLOAT[levels[2]]
    }
  }
}
