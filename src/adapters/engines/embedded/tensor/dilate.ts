/**
 * Grows bright regions by a number of pixels: every pixel becomes the brightest within a square, or within a diamond when
 * corners taper. The shape of radius a + k is the union of four shapes of radius a, each k away from the centre (k <= a);
 * so the radius doubles with every pass, and large ones cost hardly more than small ones.
 */
import type { PixelWork } from './tensor.ts'

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
export type DilatePlane = (source: Float32Array, target: Float32Array) => void

type Shift = readonly [dx: number, dy: number]

const CENTRE: Shift = [0, 0]
const SIDES: readonly Shift[] = [
  [-1, 0],
  [1, 0],
  [0, -1],
  [0, 1],
]
const CORNERS: readonly Shift[] = [
  [-1, -1],
  [1, -1],
  [-1, 1],
  [1, 1],
]

// Passes look as far beyond the image as their radius. Beyond this one, several stages cost less than a wider margin.
const MAX_STAGE_RADIUS = 256
const ROWS_PER_CHECK = 32

/** The shifts of every pass of one stage, for a radius from 1 up. */
function passesOf(radius: number, isTapered: boolean): Shift[][] {
  const directions = isTapered ? SIDES : CORNERS
  const passes: Shift[][] = [[CENTRE, ...SIDES, ...(isTapered ? [] : CORNERS)]]
  for (let reached = 1; reached < radius; ) {
    const step = Math.min(reached, radius - reached)
    passes.push(directions.map(([dx, dy]): Shift => [dx * step, dy * step]))
    reached += step
  }
  return passes
}

/** All passes; stages follow one another, since growing twice is growing by the sum. */
function allPasses(radius: number, isTapered: boolean): Shift[][] {
  const passes: Shift[][] = []
  for (let left = radius; left > 0; left -= MAX_STAGE_RADIUS) {
    passes.push(...passesOf(Math.min(left, MAX_STAGE_RADIUS), isTapered))
  }
  return passes
}

interface Canvas {
  readonly width: number
  readonly height: number
  checkpoint(): void
}

/** Every value of `to` becomes the largest of `from` at the given shifts; outside the canvas there is nothing. */
function runPass(from: Float32Array, to: Float32Array, shifts: readonly Shift[], canvas: Canvas): void {
  const { width, height, checkpoint } = canvas
  for (let y = 0; y < height; y++) {
    if (y % ROWS_PER_CHECK === 0) checkpoint()
    const row = y * width
    to.fill(Number.NEGATIVE_INFINITY, row, row + width)
    for (const [dx, dy] of shifts) {
      if (y + dy < 0 || y + dy >= height) continue
      const offset = dy * width + dx
      const end = row + Math.min(width, width - dx)
      for (let i = row + Math.max(0, -dx); i < end; i++) to[i] = Math.max(to[i], from[i + offset])
    }
  }
}

/** Scratch memory is taken once and serves every plane of a batch. */
export function createDilation(dilation: Dilation, { allocate, checkpoint }: PixelWork): DilatePlane {
  const { width, height, isTapered, isErosion } = dilation
  // The largest radius that makes a difference: from there on every shape covers the whole plane.
  const radius = Math.min(dilation.radius, isTapered ? width + height : Math.max(width, height))
  const passes = allPasses(radius, isTapered)
  const margin = Math.min(radius, MAX_STAGE_RADIUS)
  const canvas = { width: width + 2 * margin, height: height + 2 * margin, checkpoint }
  const scratch = [allocate([canvas.height, canvas.width]).data, allocate([canvas.height, canvas.width]).data]
  // The darkest is the brightest of the negative.
  const sign = isErosion ? -1 : 1
  const startOf = (y: number) => (y + margin) * canvas.width + margin
  return (source, target) => {
    let [from, to] = scratch
    from.fill(Number.NEGATIVE_INFINITY)
    for (let y = 0; y < height; y++) {
      for (let x = 0, at = startOf(y); x < width; x++) from[at + x] = sign * source[y * width + x]
    }
    for (const shifts of passes) {
      runPass(from, to, shifts, canvas)
      ;[from, to] = [to, from]
    }
    for (let y = 0; y < height; y++) {
      for (let x = 0, at = startOf(y); x < width; x++) target[y * width + x] = sign * from[at + x]
    }
  }
}
