/**
 * Pillow's median cut: the palette of an image, entry for entry. Boxes of colours are halved along their widest axis (as the
 * eye weighs it), the most populous box first; a palette entry is the mean of a box.
 */
import { inBlocks } from '../channels.ts'

/** A colour's level on each axis, and the number and the sums of the pixels that have it. */
interface ColorList {
  readonly levels: readonly [Uint8Array, Uint8Array, Uint8Array]
  readonly counts: Float64Array
  readonly sums: readonly [Float64Array, Float64Array, Float64Array]
}

const MAX_COLORS = 65_536
const BITS = 8
// Four entries per colour keep the searches short.
const TABLE_SIZE = MAX_COLORS * 4
const EMPTY = -1

function countDistinct(pixels: Uint8Array, shift: number, checkpoint: () => void): number {
  const bits = BITS - shift
  const seen = new Uint8Array(2 ** Math.max(0, bits * 3 - 3))
  let distinct = 0
  inBlocks(pixels.length / 3, checkpoint, (from, to) => {
    for (let at = from * 3; at < to * 3; at += 3) {
      const color =
        ((pixels[at] >> shift) << (2 * bits)) | ((pixels[at + 1] >> shift) << bits) | (pixels[at + 2] >> shift)
      const flag = 1 << (color & 7)
      if ((seen[color >> 3] & flag) === 0) {
        seen[color >> 3] |= flag
        distinct++
      }
    }
  })
  return distinct
}

/** How many low bits must go, and what is left then. */
function fewEnough(pixels: Uint8Array, checkpoint: () => void): { shift: number; distinct: number } {
  for (let shift = 0; ; shift++) {
    const distinct = countDistinct(pixels, shift, checkpoint)
    if (distinct <= MAX_COLORS) return { shift, distinct }
  }
}

/**
 * The distinct colours of an image and how often each occurs. Beyond 65536 colours the lowest bits are dropped until they
 * are few enough, as Pillow does; the sums keep the full values, so means stay exact.
 */
function collectColors(pixels: Uint8Array, checkpoint: () => void): ColorList {
  const { shift, distinct } = fewEnough(pixels, checkpoint)
  const levels = [0, 1, 2].map(() => new Uint8Array(distinct)) as unknown as ColorList['levels']
  const sums = [0, 1, 2].map(() => new Float64Array(distinct)) as unknown as ColorList['sums']
  const counts = new Float64Array(distinct)
  const table = new Int32Array(TABLE_SIZE).fill(EMPTY)
  const keys = new Int32Array(distinct)
  let known = 0
  inBlocks(pixels.length / 3, checkpoint, (from, to) => {
    for (let at = from * 3; at < to * 3; at += 3) {
      const [red, green, blue] = [pixels[at], pixels[at + 1], pixels[at + 2]]
      const key = ((red >> shift) << 16) | ((green >> shift) << 8) | (blue >> shift)
      let entry = (Math.imul(key, 0x9e3779b1) >>> 14) & (TABLE_SIZE - 1)
      while (table[entry] !== EMPTY && keys[table[entry]] !== key) entry = (entry + 1) & (TABLE_SIZE - 1)
      if (table[entry] === EMPTY) {
        table[entry] = known
        keys[known] = key
        levels[0][known] = red >> shift
        levels[1][known] = green >> shift
        levels[2][known] = blue >> shift
        known++
      }
      const index = table[entry]
      counts[index]++
      sums[0][index] += red
      sums[1][index] += green
      sums[2][index] += blue
    }
  })
  return { levels, counts, sums }
}

/** Red, green and blue of every entry, one after the other. */
export type Palette = Uint8Array

/** How much a step along an axis is worth when the widest is looked for. */
const AXIS_WEIGHTS = [77, 150, 29] as const
const AXES = [0, 1, 2] as const
const LEVELS = 256

interface Box {
  /** Positions in the list of colours. */
  readonly members: Int32Array
  readonly pixels: number
  readonly low: readonly number[]
  readonly high: readonly number[]
  halves: readonly [Box, Box] | null
}

function createBox({ levels, counts }: ColorList, members: Int32Array): Box {
  let pixels = 0
  const low = [LEVELS, LEVELS, LEVELS]
  const high = [-1, -1, -1]
  for (const member of members) {
    pixels += counts[member]
    for (const axis of AXES) {
      const level = levels[axis][member]
      if (level < low[axis]) low[axis] = level
      if (level > high[axis]) high[axis] = level
    }
  }
  return { members, pixels, low, high, halves: null }
}

function isSingleColor({ low, high }: Box): boolean {
  return AXES.every((axis) => low[axis] === high[axis])
}

function widestAxis({ low, high }: Box): 0 | 1 | 2 {
  const extent = (axis: 0 | 1 | 2) => (high[axis] - low[axis]) * AXIS_WEIGHTS[axis]
  return AXES.reduce((best, axis) => (extent(axis) > extent(best) ? axis : best))
}

/** The lowest level that belongs to the bright half: levels from the top are taken until they hold more than half. */
function splitLevel(box: Box, axis: 0 | 1 | 2, { levels, counts }: ColorList): number {
  const perLevel = new Float64Array(LEVELS)
  for (const member of box.members) perLevel[levels[axis][member]] += counts[member]
  let taken = 0
  for (let level = box.high[axis]; level > box.low[axis]; level--) {
    taken += perLevel[level]
    if (taken * 2 > box.pixels) return level
  }
  // The darkest level holds the most: it becomes the other half by itself.
  return box.low[axis] + 1
}

function split(box: Box, colors: ColorList): readonly [Box, Box] {
  const axis = widestAxis(box)
  const level = splitLevel(box, axis, colors)
  const ofAxis = colors.levels[axis]
  const bright = box.members.filter((member) => ofAxis[member] >= level)
  const dark = box.members.filter((member) => ofAxis[member] < level)
  return [createBox(colors, bright), createBox(colors, dark)]
}

/** A heap by number of pixels. Which of two equals comes first decides the palette, so its steps are Pillow's. */
function createHeap() {
  const heap: Box[] = []
  return {
    add(box: Box): void {
      let at = heap.length + 1
      while (at !== 1) {
        const parent = at >> 1
        if (box.pixels <= heap[parent - 1].pixels) break
        heap[at - 1] = heap[parent - 1]
        at = parent
      }
      heap[at - 1] = box
    },
    take(): Box | undefined {
      const top = heap[0]
      const last = heap.pop()
      if (last === undefined || heap.length === 0) return top
      let at = 1
      while (at * 2 <= heap.length) {
        let child = at * 2
        if (child < heap.length && heap[child - 1].pixels < heap[child].pixels) child++
        if (last.pixels > heap[child - 1].pixels) break
        heap[at - 1] = heap[child - 1]
        at = child
      }
      heap[at - 1] = last
      return top
    },
  }
}

function* leaves(box: Box): Generator<Box> {
  if (box.halves === null) yield box
  else for (const half of box.halves) yield* leaves(half)
}

function meanColor({ members, pixels }: Box, { sums }: ColorList): number[] {
  return sums.map((ofAxis) => {
    let sum = 0
    for (const member of members) sum += ofAxis[member]
    return Math.trunc(0.5 + sum / pixels)
  })
}

/** At most `size` colours that stand for those of interleaved 8-bit RGB pixels. */
export function medianCut(pixels: Uint8Array, size: number, checkpoint: () => void): Palette {
  const colors = collectColors(pixels, checkpoint)
  const root = createBox(
    colors,
    Int32Array.from(colors.counts, (_, index) => index),
  )
  const heap = createHeap()
  heap.add(root)
  for (let boxes = 1; boxes < size; boxes++) {
    checkpoint()
    let box = heap.take()
    while (box !== undefined && isSingleColor(box)) box = heap.take()
    if (box === undefined) break
    box.halves = split(box, colors)
    for (const half of box.halves) heap.add(half)
  }
  return Uint8Array.from([...leaves(root)].flatMap((box) => meanColor(box, colors)))
}

// Pixels to palette entries, as Pillow finds them: the nearest entry is looked up for cells of four levels a side and
// judged at their lowest corner, so that a picture needs at most 262144 searches. The lower of two equally near wins.

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
