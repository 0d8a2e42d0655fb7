/**
 * Largest or smallest value of a window around every pixel, each axis by itself. A window is the end of one block of its
 * own length and the start of the next, so running extremes of blocks give every window in two comparisons, whatever its
 * length. What lies outside the image is left out.
 */
import { type Tensor, viewOf } from './tensor.ts'
import type { PixelWork } from './upscale.ts'

export interface WindowExtreme {
  readonly kind: 'max' | 'min'
  /** Side of the square window. */
  readonly size: number
  /** How far the window reaches to the left of and above its pixel. */
  readonly origin: number
}

// About half a megabyte of running extremes: they should stay in the cache.
const STRIP_VALUES = 131_072
const OUTSIDE = { max: Number.NEGATIVE_INFINITY, min: Number.POSITIVE_INFINITY } as const

/** out = the extreme of a and b, value by value. */
function combine(out: Float32Array, a: Float32Array, b: Float32Array, isMax: boolean): void {
  if (isMax) {
    for (let i = 0; i < out.length; i++) out[i] = a[i] > b[i] ? a[i] : b[i]
  } else {
    for (let i = 0; i < out.length; i++) out[i] = a[i] < b[i] ? a[i] : b[i]
  }
}

/**
 * The window over a sequence of `count` items of equal length, be they rows of pixels or pixels of a row. The sequence is
 * seen with `origin` empty items before it. `suffixes` has room for `size` items, `prefix` for one.
 */
interface Sequence {
  readonly count: number
  item(index: number): Float32Array
  out(index: number): Float32Array
}

interface Scratch {
  readonly suffixes: readonly Float32Array[]
  readonly prefix: Float32Array
}

function slide({ count, item, out }: Sequence, { kind, size, origin }: WindowExtreme, { suffixes, prefix }: Scratch) {
  const isMax = kind === 'max'
  const load = (target: Float32Array, index: number) => {
    if (index < 0 || index >= count) target.fill(OUTSIDE[kind])
    else target.set(item(index))
  }
  for (let block = 0; block < count; block += size) {
    // Item `block + k` of the padded sequence is item `block + k - origin` of the real one.
    for (let k = size - 1; k >= 0; k--) {
      load(suffixes[k], block + k - origin)
      if (k < size - 1) combine(suffixes[k], suffixes[k], suffixes[k + 1], isMax)
    }
    const end = Math.min(size, count - block)
    prefix.fill(OUTSIDE[kind])
    for (let k = 0; k < end; k++) {
      // The window of target `block + k` ends in the next block, k items in.
      const added = block + size + k - 1 - origin
      if (k > 0 && added >= 0 && added < count) combine(prefix, prefix, item(added), isMax)
      combine(out(block + k), suffixes[k], prefix, isMax)
    }
  }
}

function scratchFor(size: number, length: number): Scratch {
  return {
    suffixes: Array.from({ length: size }, () => new Float32Array(length)),
    prefix: new Float32Array(length),
  }
}

/** One row of pixels at a time, for windows along it: the same idea with plain numbers. */
function slideRow(
  row: Float32Array,
  out: Float32Array,
  { channels, kind, size, origin, suffixes }: WindowExtreme & { channels: number; suffixes: Float32Array },
): void {
  const width = row.length / channels
  const outside = OUTSIDE[kind]
  const isMax = kind === 'max'
  for (let c = 0; c < channels; c++) {
    for (let block = 0; block < width; block += size) {
      let running: number = outside
      for (let k = size - 1; k >= 0; k--) {
        const x = block + k - origin
        if (x >= 0 && x < width) {
          const value = row[x * channels + c]
          if (isMax ? value > running : value < running) running = value
        }
        suffixes[k] = running
      }
      const end = Math.min(size, width - block)
      running = outside
      for (let k = 0; k < end; k++) {
        const x = block + size + k - 1 - origin
        if (k > 0 && x < width) {
          const value = row[x * channels + c]
          if (isMax ? value > running : value < running) running = value
        }
        const before = suffixes[k]
        out[(block + k) * channels + c] = isMax ? Math.max(before, running) : Math.min(before, running)
      }
    }
  }
}

export function slidingExtreme(image: Tensor, window: WindowExtreme, { allocate, checkpoint }: PixelWork): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const across = allocate(image.shape)
  const result = allocate(image.shape)
  const rowLength = width * channels
  const suffixes = new Float32Array(window.size)
  for (let row = 0; row < batch * height; row++) {
    checkpoint()
    const at = row * rowLength
    const out = across.data.subarray(at, at + rowLength)
    slideRow(data.subarray(at, at + rowLength), out, { ...window, channels, suffixes })
  }
  // A tall window over wide rows would need much room, so columns are done in strips.
  const strip = Math.min(rowLength, Math.max(64, Math.floor(STRIP_VALUES / window.size)))
  const scratch = scratchFor(window.size, strip)
  for (let index = 0; index < batch; index++) {
    for (let left = 0; left < rowLength; left += strip) {
      const length = Math.min(strip, rowLength - left)
      const part = (from: Float32Array, y: number) => {
        checkpoint()
        const at = (index * height + y) * rowLength + left
        return from.subarray(at, at + length)
      }
      const item = (y: number) => part(across.data, y)
      const out = (y: number) => part(result.data, y)
      slide({ count: height, item, out }, window, length === strip ? scratch : scratchFor(window.size, length))
    }
  }
  return result
}
