/**
 * Grows bright regions by a number of pixels: every pixel becomes the brightest within a square, or within a diamond when
 * corners taper. The shape of radius a + k is the union of four shapes of radius a, each k away from the centre (k <= a);
 * so the radius doubles with every pass, and large ones cost hardly more than small ones.
 */
import { inBlocks } from '../channels.ts'
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'

export interface Dilation {
  readonly width: number
  readonly height: number
  readonly radius: number
  /** A diamond instead of a square. */
  readonly isTapered: boolean
  /** Grows dark regions instead. */
  readonly isErosion: boolean
}

/** Writes the grown plane; both hold `width * height` values. */
type DilatePlane = (source: Float32Array, target: Float32Array) => void

type Shift = readonly [dx: number, dy: number]

/** A pass takes the brightest of a pixel and its neighbours at these four shifts. */
interface Pass {
  readonly shifts: readonly [Shift, Shift, Shift, Shift]
  /** How far its shifts reach. */
  readonly step: number
}

const SIDES: readonly [Shift, Shift, Shift, Shift] = [
  [-1, 0],
  [1, 0],
  [0, -1],
  [0, 1],
]
const CORNERS: readonly [Shift, Shift, Shift, Shift] = [
  [-1, -1],
  [1, -1],
  [-1, 1],
  [1, 1],
]
const [LEFT, RIGHT, ABOVE, BELOW] = SIDES

const FIRST_TAPERED: readonly Pass[] = [{ shifts: SIDES, step: 1 }]
// Eight neighbours are reached along the row, then across rows.
const FIRST_SQUARE: readonly Pass[] = [
  { shifts: [LEFT, RIGHT, LEFT, RIGHT], step: 1 },
  { shifts: [ABOVE, BELOW, ABOVE, BELOW], step: 1 },
]

// Passes look beyond the image. Beyond this radius, several stages cost less than a wider margin.
const MAX_STAGE_RADIUS = 256
const ROWS_PER_CHECK = 32

/** The passes of one stage, for a radius from 1 up. */
function passesOf(radius: number, isTapered: boolean): Pass[] {
  const passes = [...(isTapered ? FIRST_TAPERED : FIRST_SQUARE)]
  const [a, b, c, d] = isTapered ? SIDES : CORNERS
  for (let reached = 1; reached < radius; ) {
    const step = Math.min(reached, radius - reached)
    const far = ([dx, dy]: Shift): Shift => [dx * step, dy * step]
    passes.push({ shifts: [far(a), far(b), far(c), far(d)], step })
    reached += step
  }
  return passes
}

const reachOf = (passes: readonly Pass[]) => passes.reduce((sum, pass) => sum + pass.step, 0)

/** The image in the middle of a wider area, where nothing is. */
interface Canvas {
  readonly imageWidth: number
  readonly imageHeight: number
  readonly margin: number
  readonly rowLength: number
}

/** Writes the image and `around` pixels on every side of it. */
function runPass(
  from: Float32Array,
  to: Float32Array,
  { shifts }: Pass,
  { canvas, around, checkpoint }: { readonly canvas: Canvas; readonly around: number; checkpoint(): void },
): void {
  const { rowLength, margin, imageWidth, imageHeight } = canvas
  const [a, b, c, d] = shifts.map(([dx, dy]) => dy * rowLength + dx)
  const first = margin - around
  for (let y = first; y < margin + imageHeight + around; y++) {
    if (y % ROWS_PER_CHECK === 0) checkpoint()
    const end = y * rowLength + margin + imageWidth + around
    for (let i = y * rowLength + first; i < end; i++) {
      // Masks are mostly flat, so these comparisons are guessed right; Math.max costs twice as much.
      let most = from[i]
      if (from[i + a] > most) most = from[i + a]
      if (from[i + b] > most) most = from[i + b]
      if (from[i + c] > most) most = from[i + c]
      if (from[i + d] > most) most = from[i + d]
      to[i] = most
    }
  }
}

/** Scratch memory is taken once and serves every plane of a batch. */
export function createDilation(dilation: Dilation, { allocate, checkpoint }: PixelWork): DilatePlane {
  const { width, height, isTapered, isErosion } = dilation
  // The largest radius that makes a difference: from there on every shape covers the whole plane.
  const radius = Math.min(dilation.radius, isTapered ? width + height : Math.max(width, height))
  const stages: Pass[][] = []
  for (let left = radius; left > 0; left -= MAX_STAGE_RADIUS) {
    stages.push(passesOf(Math.min(left, MAX_STAGE_RADIUS), isTapered))
  }
  const margin = Math.max(0, ...stages.map(reachOf))
  const canvas = { imageWidth: width, imageHeight: height, margin, rowLength: width + 2 * margin }
  const scratch = [0, 1].map(() => allocate([height + 2 * margin, canvas.rowLength]).data)
  // The darkest is the brightest of the negative.
  const sign = isErosion ? -1 : 1
  const startOf = (y: number) => (y + margin) * canvas.rowLength + margin
  return (source, target) => {
    let [from, to] = scratch
    // Later passes may find older values in the margin: they are maxima of parts of what is looked for.
    for (const memory of scratch) {
      inBlocks(memory.length, checkpoint, (start, end) => memory.fill(Number.NEGATIVE_INFINITY, start, end))
    }
    for (let y = 0; y < height; y++) {
      checkpoint()
      for (let x = 0, at = startOf(y); x < width; x++) from[at + x] = sign * source[y * width + x]
    }
    for (const passes of stages) {
      let around = reachOf(passes)
      for (const pass of passes) {
        around -= pass.step
        runPass(from, to, pass, { canvas, around, checkpoint })
        ;[from, to] = [to, from]
      }
    }
    for (let y = 0; y < height; y++) {
      checkpoint()
      for (let x = 0, at = startOf(y); x < width; x++) target[y * width + x] = sign * from[at + x]
    }
  }
}

// Largest or smallest value of a square window around every pixel, each axis by itself. Windows of twice the length come
// from two neighbouring ones, so a window of a thousand pixels takes ten passes and not a thousand. What lies outside the
// image is left out.
// Floats are compared by their bits, put into an order in which integers and floats agree: the processor then needs no
// branch per pixel, and on real pictures a branch is guessed wrong every other time.

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
