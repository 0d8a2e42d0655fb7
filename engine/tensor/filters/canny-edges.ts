/**
 * Canny's edges as kornia finds them: blur, gradient, keep only the crest of every slope, then keep weak crests that
 * touch strong ones. Everything in single precision where a comparison could come out otherwise.
 */
import { inBlocks } from '../channels.ts'
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'
import type { HalfKernel } from './filter-rows.ts'
import { filterSeparable } from './separable-filter.ts'

const { fround } = Math

// A bell of five weights with a deviation of one pixel.
const BLUR: HalfKernel = (() => {
  const half = Float64Array.from([0, 1, 2], (k) => Math.exp(-(k * k) / 2))
  const sum = half[0] + 2 * (half[1] + half[2])
  return half.map((weight) => weight / sum)
})()

// Keeps the root away from zero, as in the original, where gradients are trained through it.
const EPSILON = 1e-6

/** Steps to the neighbour in each of eight directions, from the right clockwise as the picture is seen. */
const STEPS = [
  [1, 0],
  [1, 1],
  [0, 1],
  [-1, 1],
  [-1, 0],
  [-1, -1],
  [0, -1],
  [1, -1],
] as const

/** Brightness of every pixel; images of one channel are taken as they are. */
function greyOf(image: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const grey = allocate([batch, height, width])
  const rows = batch * height
  for (let row = 0, at = 0, out = 0; row < rows; row++) {
    checkpoint()
    for (let x = 0; x < width; x++, at += channels, out++) {
      grey.data[out] = channels === 3 ? 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2] : data[at]
    }
  }
  return grey
}

interface Slopes {
  readonly magnitudes: Float32Array
  /** Along which of four axes each slope rises or falls: the first half of the steps. */
  readonly axes: Uint8Array
}

const TAN_22_5 = Math.tan(Math.PI / 8)

/** Sobel's gradient of one image, whose edge pixels are repeated outwards. */
function slopesOf(pixels: Float32Array, width: number, height: number, checkpoint: () => void): Slopes {
  const magnitudes = new Float32Array(width * height)
  const axes = new Uint8Array(width * height)
  for (let y = 0, at = 0; y < height; y++) {
    checkpoint()
    const row = y * width
    const above = y === 0 ? row : row - width
    const below = y === height - 1 ? row : row + width
    for (let x = 0; x < width; x++, at++) {
      const left = x === 0 ? 0 : x - 1
      const right = x === width - 1 ? x : x + 1
      const upperLeft = pixels[above + left]
      const upperRight = pixels[above + right]
      const lowerLeft = pixels[below + left]
      const lowerRight = pixels[below + right]
      const sideways = 2 * (pixels[row + right] - pixels[row + left])
      const upright = 2 * (pixels[below + x] - pixels[above + x])
      const across = fround(upperRight - upperLeft + sideways + (lowerRight - lowerLeft))
      const down = fround(lowerLeft - upperLeft + upright + (lowerRight - upperRight))
      magnitudes[at] = Math.sqrt(fround(fround(across * across) + fround(down * down)) + EPSILON)
      const [wide, high] = [Math.abs(across), Math.abs(down)]
      if (high <= TAN_22_5 * wide) axes[at] = 0
      else if (wide <= TAN_22_5 * high) axes[at] = 2
      else axes[at] = across > 0 === down > 0 ? 1 : 3
    }
  }
  return { magnitudes, axes }
}

const WEAK = 1
const STRONG = 2

interface Thresholds {
  readonly low: number
  readonly high: number
}

type Judge = Thresholds & Pick<PixelWork, 'checkpoint'>

/** Pixels that are larger than both neighbours along their slope, by strength. Outside the image there is nothing. */
function crestsOf({ magnitudes, axes }: Slopes, width: number, { low, high, checkpoint }: Judge): Uint8Array {
  const height = magnitudes.length / width
  const valueAt = (x: number, y: number) =>
    x < 0 || y < 0 || x >= width || y >= height ? 0 : magnitudes[y * width + x]
  const crests = new Uint8Array(magnitudes.length)
  for (let y = 0, at = 0; y < height; y++) {
    checkpoint()
    for (let x = 0; x < width; x++, at++) {
      const magnitude = magnitudes[at]
      if (!(magnitude > low)) continue
      const [right, down] = STEPS[axes[at]]
      if (magnitude > valueAt(x + right, y + down) && magnitude > valueAt(x - right, y - down)) {
        crests[at] = magnitude > high ? STRONG : WEAK
      }
    }
  }
  return crests
}

/** Makes every weak crest strong that is connected to a strong one; `crests` is changed. */
function connect(crests: Uint8Array, width: number, checkpoint: () => void): void {
  const height = crests.length / width
  const waiting: number[] = []
  for (let start = 0; start < crests.length; start++) {
    if (start % width === 0) checkpoint()
    if (crests[start] !== STRONG) continue
    // Everything that this one reaches, before the next one is looked at: the list stays short.
    waiting.push(start)
    for (let done = 1; waiting.length > 0; done++) {
      if (done % 65_536 === 0) checkpoint()
      const at = waiting.pop() as number
      const x = at % width
      const y = (at - x) / width
      for (const [right, down] of STEPS) {
        const [nextX, nextY] = [x + right, y + down]
        if (nextX < 0 || nextY < 0 || nextX >= width || nextY >= height) continue
        const next = nextY * width + nextX
        if (crests[next] !== WEAK) continue
        crests[next] = STRONG
        waiting.push(next)
      }
    }
  }
}

/** Images of 0 and 1 with three equal channels. */
export function canny(image: Tensor, { low, high }: Thresholds, work: PixelWork): Tensor {
  const blurred = filterSeparable(greyOf(image, work), { half: BLUR }, work)
  const { batch, height, width, data } = viewOf(blurred)
  const result = work.allocate([batch, height, width, 3])
  const size = width * height
  // Thresholds meet single-precision magnitudes.
  const judge = { low: fround(low), high: fround(high), checkpoint: work.checkpoint }
  for (let index = 0; index < batch; index++) {
    const pixels = data.subarray(index * size, (index + 1) * size)
    const crests = crestsOf(slopesOf(pixels, width, height, work.checkpoint), width, judge)
    connect(crests, width, work.checkpoint)
    const out = result.data.subarray(index * size * 3, (index + 1) * size * 3)
    inBlocks(size, work.checkpoint, (start, end) => {
      for (let pixel = start, at = start * 3; pixel < end; pixel++, at += 3) {
        const value = crests[pixel] === STRONG ? 1 : 0
        out[at] = value
        out[at + 1] = value
        out[at + 2] = value
      }
    })
  }
  return result
}
