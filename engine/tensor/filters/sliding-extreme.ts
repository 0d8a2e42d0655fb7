/**
 * Largest or smallest value of a square window around every pixel, each axis by itself. Windows of twice the length come
 * from two neighbouring ones, so a window of a thousand pixels takes ten passes and not a thousand. What lies outside the
 * image is left out.
 *
 * Floats are compared by their bits, put into an order in which integers and floats agree: the processor then needs no
 * branch per pixel, and on real pictures a branch is guessed wrong every other time.
 */
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'

interface WindowExtreme {
  readonly kind: 'max' | 'min'
  /** Side of the square window. */
  readonly size: number
  /** How far the window reaches to the left of and above its pixel. */
  readonly origin: number
}

// Below and above every float.
const OUTSIDE = { max: -2_147_483_648, min: 2_147_483_647 } as const
// A strip of columns that stays in the cache; whole columns of whole rows would not.
const STRIP_VALUES = 131_072

/** Reverses the order of negative floats; doing it twice gives the bits back. */
function ordered(bits: number): number {
  return bits ^ ((bits >> 31) & 0x7fffffff)
}

type Combine = (values: Int32Array, range: { readonly distance: number; readonly end: number }) => void

/** values[i] = the larger of itself and the one `distance` further on. Reads only what is not yet written. */
const takeLarger: Combine = (values, { distance, end }) => {
  for (let i = 0; i < end; i++) {
    const a = values[i]
    const b = values[i + distance]
    values[i] = b ^ ((a ^ b) & -(a > b))
  }
}

const takeSmaller: Combine = (values, { distance, end }) => {
  for (let i = 0; i < end; i++) {
    const a = values[i]
    const b = values[i + distance]
    values[i] = b ^ ((a ^ b) & -(a < b))
  }
}

/** Item i becomes the extreme of the items i..i+size-1, for items of `step` values; the last size-1 items are used up. */
function widen(values: Int32Array, { size, step, combine }: { size: number; step: number; combine: Combine }): void {
  let covered = 1
  for (let left = values.length; covered < size; ) {
    const further = Math.min(covered, size - covered)
    left -= further * step
    combine(values, { distance: further * step, end: left })
    covered += further
  }
}

interface Rows {
  /** The bits of an image, changed in place. */
  readonly bits: Int32Array
  readonly rowLength: number
  readonly channels: number
}

function slideAcross(source: Int32Array, { bits, rowLength, channels }: Rows, { size, origin, kind }: WindowExtreme) {
  const combine = kind === 'max' ? takeLarger : takeSmaller
  const row = new Int32Array(rowLength + (size - 1) * channels)
  const first = origin * channels
  return (index: number) => {
    const at = index * rowLength
    row.fill(OUTSIDE[kind])
    for (let i = 0; i < rowLength; i++) row[first + i] = ordered(source[at + i])
    widen(row, { size, step: channels, combine })
    for (let i = 0; i < rowLength; i++) bits[at + i] = row[i]
  }
}

/** All rows of a strip of columns, of values that are in order already. */
function slideDown({ bits, rowLength }: Rows, height: number, { size, origin, kind }: WindowExtreme) {
  const combine = kind === 'max' ? takeLarger : takeSmaller
  const rows = height + size - 1
  const strip = Math.max(1, Math.min(rowLength, Math.floor(STRIP_VALUES / rows)))
  const scratch = new Int32Array(rows * strip)
  const slideStrip = (frame: number, left: number) => {
    const length = Math.min(strip, rowLength - left)
    const columns = scratch.subarray(0, rows * length)
    columns.fill(OUTSIDE[kind])
    for (let y = 0, out = origin * length; y < height; y++) {
      const at = (frame * height + y) * rowLength + left
      for (let i = 0; i < length; i++) columns[out++] = bits[at + i]
    }
    widen(columns, { size, step: length, combine })
    for (let y = 0, from = 0; y < height; y++) {
      const at = (frame * height + y) * rowLength + left
      for (let i = 0; i < length; i++) bits[at + i] = ordered(columns[from++])
    }
  }
  return { strip, slideStrip }
}

function bitsOf({ data }: Tensor): Int32Array {
  return new Int32Array(data.buffer, data.byteOffset, data.length)
}

export function slidingExtreme(image: Tensor, window: WindowExtreme, { allocate, checkpoint }: PixelWork): Tensor {
  const { batch, height, width, channels } = viewOf(image)
  const result = allocate(image.shape)
  const rows = { bits: bitsOf(result), rowLength: width * channels, channels }
  const slideRow = slideAcross(bitsOf(image), rows, window)
  for (let row = 0; row < batch * height; row++) {
    checkpoint()
    slideRow(row)
  }
  const { strip, slideStrip } = slideDown(rows, height, window)
  for (let frame = 0; frame < batch; frame++) {
    for (let left = 0; left < rows.rowLength; left += strip) {
      checkpoint()
      slideStrip(frame, left)
    }
  }
  return result
}
