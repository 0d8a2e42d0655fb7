/**
 * Pixels to palette entries, as Pillow finds them: the nearest entry is looked up for cells of four levels a side and
 * judged at their lowest corner, so that a picture needs at most 262144 searches. The lower of two equally near wins.
 */
import type { Palette } from './median-cut.ts'

const CELL_BITS = 2
const CELLS = 64
const UNKNOWN = -1

/** Answers with an entry's number for a colour. */
type NearestEntry = (red: number, green: number, blue: number) => number

function createNearestEntry(palette: Palette): NearestEntry {
  const known = new Int16Array(CELLS * CELLS * CELLS).fill(UNKNOWN)

  function search(red: number, green: number, blue: number): number {
    let best = 0
    let least = Number.POSITIVE_INFINITY
    for (let entry = 0, at = 0; at < palette.length; entry++, at += 3) {
      const r = red - palette[at]
      const g = green - palette[at + 1]
      const b = blue - palette[at + 2]
      const distance = r * r + g * g + b * b
      if (distance < least) {
        least = distance
        best = entry
      }
    }
    return best
  }

  return (red, green, blue) => {
    const [r, g, b] = [red >> CELL_BITS, green >> CELL_BITS, blue >> CELL_BITS]
    const cell = (r * CELLS + g) * CELLS + b
    if (known[cell] === UNKNOWN) known[cell] = search(r << CELL_BITS, g << CELL_BITS, b << CELL_BITS)
    return known[cell]
  }
}

export interface Picture {
  /** Interleaved RGB, changed in place. */
  readonly pixels: Uint8Array
  readonly width: number
  readonly height: number
}

export function mapToPalette({ pixels, width, height }: Picture, palette: Palette, checkpoint: () => void): void {
  const nearest = createNearestEntry(palette)
  for (let y = 0, at = 0; y < height; y++) {
    checkpoint()
    for (let x = 0; x < width; x++, at += 3) {
      const entry = nearest(pixels[at], pixels[at + 1], pixels[at + 2]) * 3
      pixels[at] = palette[entry]
      pixels[at + 1] = palette[entry + 1]
      pixels[at + 2] = palette[entry + 2]
    }
  }
}

function clip(level: number): number {
  return level < 0 ? 0 : level > 255 ? 255 : level
}

/**
 * Floyd and Steinberg's error diffusion in whole sixteenths, always from left to right. What a row hands down is
 * stored in `errors` one pixel to the left of where it will be read: entry 0 is never read, and entry x+1 belongs to pixel x.
 */
export function ditherToPalette({ pixels, width, height }: Picture, palette: Palette, checkpoint: () => void): void {
  const nearest = createNearestEntry(palette)
  const errors = new Int32Array((width + 1) * 3)
  const level = new Int32Array(3)
  const carry = new Int32Array(3)
  const below = new Int32Array(3)
  const belowRight = new Int32Array(3)
  for (let y = 0, at = 0; y < height; y++) {
    checkpoint()
    carry.fill(0)
    below.fill(0)
    belowRight.fill(0)
    for (let x = 0; x < width; x++, at += 3) {
      const cell = x * 3
      for (let c = 0; c < 3; c++) {
        // Division drops the fraction towards zero, also of negative errors.
        level[c] = clip(pixels[at + c] + Math.trunc((carry[c] + errors[cell + 3 + c]) / 16))
      }
      const entry = nearest(level[0], level[1], level[2]) * 3
      for (let c = 0; c < 3; c++) {
        const chosen = palette[entry + c]
        const error = level[c] - chosen
        pixels[at + c] = chosen
        errors[cell + c] = error * 3 + below[c]
        below[c] = error * 5 + belowRight[c]
        belowRight[c] = error
        carry[c] = error * 7
      }
    }
    // At the right end of a row Pillow hands down blue's errors for all three colours; equal pictures need the same slip.
    errors[width * 3] = below[2]
    errors[width * 3 + 1] = belowRight[2]
    errors[width * 3 + 2] = belowRight[2]
  }
}

const { fround } = Math

// Where each quarter lies between the steps of the smaller matrix: upper left, upper right, lower left, lower right.
const OFFSETS = [-1.5, 0.5, 1.5, -0.5] as const

/**
 * The threshold pattern of ordered dithering, every matrix built of four of the next smaller one: `side`² values around 0
 * within ±0.5, row by row. `side` is a power of two.
 */
export function bayerMatrix(side: number): Float32Array {
  if (side === 1) return new Float32Array(1)
  const half = side / 2
  const smaller = bayerMatrix(half)
  const count = side * side
  const matrix = new Float32Array(count)
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const quarter = (y < half ? 0 : 2) + (x < half ? 0 : 1)
      const scaled = fround(count * smaller[(y % half) * half + (x % half)])
      matrix[y * side + x] = fround(scaled + OFFSETS[quarter]) / count
    }
  }
  return matrix
}
