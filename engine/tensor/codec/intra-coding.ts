/**
 * What a key frame of H.264 does to a plane: blocks of four by four pixels are guessed from the pixels already done, the
 * rest goes through the standard's integer transform and its quantiser, and back. No bits are written, and an encoder's
 * freedom (larger blocks, more ways of guessing) is not used: the loss is like a real encoder's, not equal to it.
 */
import { BYTE_TO_FLOAT, byteOf } from '../bytes.ts'

// 8-bit planes as video codecs take them: brightness at full size, colour at half, in studio range (BT.601).

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

const SIDE = 4
const POSITIONS = 16
// The standard's multipliers by the remainder of the quantiser and by the kind of position: corners, centres, the others.
const FORWARD = [
  [13107, 5243, 8066],
  [11916, 4660, 7490],
  [10082, 4194, 6554],
  [9362, 3647, 5825],
  [8192, 3355, 5243],
  [7282, 2893, 4559],
] as const
const BACKWARD = [
  [10, 16, 13],
  [11, 18, 14],
  [13, 20, 16],
  [14, 23, 18],
  [16, 25, 20],
  [18, 29, 23],
] as const

/** Of every position in a block: 0 corners, 1 centres, 2 the others. */
const KINDS = Uint8Array.from({ length: POSITIONS }, (_, position) => [0, 2, 1][(position & 1) + ((position >> 2) & 1)])

/** One pass of the transform over four values `step` apart. */
function forwardLine(block: Int32Array, at: number, step: number): void {
  const a = block[at]
  const b = block[at + step]
  const c = block[at + 2 * step]
  const d = block[at + 3 * step]
  block[at] = a + b + c + d
  block[at + step] = 2 * a + b - c - 2 * d
  block[at + 2 * step] = a - b - c + d
  block[at + 3 * step] = a - 2 * b + 2 * c - d
}

function backwardLine(block: Int32Array, at: number, step: number): void {
  const a = block[at]
  const b = block[at + step]
  const c = block[at + 2 * step]
  const d = block[at + 3 * step]
  const e = a + c
  const f = a - c
  const g = (b >> 1) - d
  const h = b + (d >> 1)
  block[at] = e + h
  block[at + step] = f + g
  block[at + 2 * step] = f - g
  block[at + 3 * step] = e - h
}

/** A quantiser's numbers for every position of a block. */
interface Quantiser {
  readonly forward: Float64Array
  readonly backward: Int32Array
}

function createQuantiser(strength: number): Quantiser {
  const [step, remainder] = [Math.floor(strength / 6), strength % 6]
  return {
    forward: Float64Array.from(KINDS, (kind) => FORWARD[remainder][kind] / 2 ** (15 + step)),
    backward: Int32Array.from(KINDS, (kind) => BACKWARD[remainder][kind] * 2 ** step),
  }
}

/** There and back: what a decoder would see of these differences. */
function lose(block: Int32Array, { forward, backward }: Quantiser): void {
  for (let line = 0; line < SIDE; line++) forwardLine(block, line * SIDE, 1)
  for (let line = 0; line < SIDE; line++) forwardLine(block, line, SIDE)
  for (let position = 0; position < POSITIONS; position++) {
    const value = block[position]
    // A third of a step is added, as encoders do for key frames: small values fall to zero.
    const level = (Math.abs(value) * forward[position] + 1 / 3) | 0
    block[position] = (value < 0 ? -level : level) * backward[position]
  }
  for (let line = 0; line < SIDE; line++) backwardLine(block, line * SIDE, 1)
  for (let line = 0; line < SIDE; line++) backwardLine(block, line, SIDE)
  for (let position = 0; position < POSITIONS; position++) block[position] = (block[position] + 32) >> 6
}

/** The ways of guessing a block from its neighbours: their mean, the row above, the column to the left. */
interface Guesses {
  readonly mean: Int32Array
  readonly above: Int32Array
  readonly left: Int32Array
}

function meanAround({ data, width }: BytePlane, x: number, y: number): number {
  let [sum, count] = [0, 0]
  for (let i = 0; i < SIDE; i++) {
    if (y > 0) sum += data[(y - 1) * width + x + i]
    if (x > 0) sum += data[(y + i) * width + x - 1]
  }
  if (y > 0) count += SIDE
  if (x > 0) count += SIDE
  return count === 0 ? 128 : Math.round(sum / count)
}

function fillGuesses({ mean, above, left }: Guesses, plane: BytePlane, { x, y }: { x: number; y: number }): void {
  const { data, width } = plane
  mean.fill(meanAround(plane, x, y))
  for (let position = 0; position < POSITIONS; position++) {
    if (y > 0) above[position] = data[(y - 1) * width + x + (position & 3)]
    if (x > 0) left[position] = data[(y + (position >> 2)) * width + x - 1]
  }
}

function distance(block: Int32Array, guess: Int32Array): number {
  let sum = 0
  for (let position = 0; position < POSITIONS; position++) sum += Math.abs(block[position] - guess[position])
  return sum
}

/** The guess that comes nearest, among those that have neighbours to guess from. */
function nearest(block: Int32Array, { mean, above, left }: Guesses, { x, y }: { x: number; y: number }): Int32Array {
  let best = mean
  let least = distance(block, mean)
  if (y > 0 && distance(block, above) < least) {
    best = above
    least = distance(block, above)
  }
  return x > 0 && distance(block, left) < least ? left : best
}

/** Changes the plane to what comes back. Sides must be multiples of four. */
export function codePlane(plane: BytePlane, strength: number, checkpoint: () => void): void {
  const { data, width, height } = plane
  const quantiser = createQuantiser(strength)
  const block = new Int32Array(POSITIONS)
  const newGuess = () => new Int32Array(POSITIONS)
  const guesses = { mean: newGuess(), above: newGuess(), left: newGuess() }
  for (let y = 0; y < height; y += SIDE) {
    checkpoint()
    for (let x = 0; x < width; x += SIDE) {
      const start = y * width + x
      for (let position = 0; position < POSITIONS; position++)
        block[position] = data[start + (position >> 2) * width + (position & 3)]
      fillGuesses(guesses, plane, { x, y })
      const guess = nearest(block, guesses, { x, y })
      for (let position = 0; position < POSITIONS; position++) block[position] -= guess[position]
      lose(block, quantiser)
      for (let position = 0; position < POSITIONS; position++) {
        data[start + (position >> 2) * width + (position & 3)] = guess[position] + block[position]
      }
    }
  }
}
