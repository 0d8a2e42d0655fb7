/**
 * Grows bright regions by a number of pixels: every pixel becomes the brightest within a square, or within a diamond when
 * corners taper. The shape of radius a + k is the union of four shapes of radius a, each k away from the centre (k <= a);
 * so the radius doubles with every pass, and large ones cost hardly more than small ones.
 */
import { inBlocks } from '../map-pixels.ts'
import type { PixelWork } from '../tensor.ts'

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
