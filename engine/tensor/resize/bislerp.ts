/**
 * ComfyUI's resize for latents: like bilinear, but between two pixels it rotates the vector of their channels along the arc
 * from one to the other, so that its length is not lost. Width first, then height.
 */

import type { PixelWork, Tensor } from '../tensor.ts'
import { createAxisTable } from './resize-float.ts'

/** Vectors this close to each other, or to opposites, have no arc worth following. */
const NEARLY = 1e-5
const { fround } = Math

/** For every target position: the two source positions, and how far it is from the first towards the second. */
interface Steps {
  readonly first: Int32Array
  readonly second: Int32Array
  readonly ratios: Float32Array
}

/** Positions come from resizing the ramps 0..n-1 and 1..n, in single precision as upstream does. */
function createSteps(from: number, to: number): Steps {
  const { taps, indexes, weights } = createAxisTable('bilinear', from, to)
  const steps = { first: new Int32Array(to), second: new Int32Array(to), ratios: new Float32Array(to) }
  for (let target = 0; target < to; target++) {
    let [at, after] = [0, 0]
    for (let k = target * taps; k < (target + 1) * taps; k++) {
      at = fround(at + fround(weights[k] * indexes[k]))
      after = fround(after + fround(weights[k] * Math.min(indexes[k] + 1, from - 1)))
    }
    steps.first[target] = Math.floor(at)
    steps.ratios[target] = at - Math.floor(at)
    steps.second[target] = Math.trunc(after)
  }
  return steps
}

/** A row of vectors: `channels` rows of `width` values. */
interface RowPair {
  readonly a: Float32Array
  readonly b: Float32Array
  readonly ratios: Float32Array
  readonly width: number
}

/** The factors of both vectors at every position of a row. */
interface Factors {
  readonly ofA: Float64Array
  readonly ofB: Float64Array
}

function writeFactors({ a, b, ratios, width }: RowPair, { ofA, ofB }: Factors): void {
  for (let x = 0; x < width; x++) {
    let [aa, bb, ab] = [0, 0, 0]
    for (let at = x; at < a.length; at += width) {
      aa += a[at] * a[at]
      bb += b[at] * b[at]
      ab += a[at] * b[at]
    }
    const ratio = ratios[x]
    const lengthA = Math.sqrt(aa)
    const lengthB = Math.sqrt(bb)
    const cosine = lengthA === 0 || lengthB === 0 ? 0 : ab / (lengthA * lengthB)
    if (cosine > 1 - NEARLY) {
      ofA[x] = 1
      ofB[x] = 0
    } else if (cosine < NEARLY - 1) {
      ofA[x] = 1 - ratio
      ofB[x] = ratio
    } else {
      const angle = Math.acos(cosine)
      const scale = (lengthA * (1 - ratio) + lengthB * ratio) / Math.sin(angle)
      ofA[x] = lengthA === 0 ? 0 : (Math.sin((1 - ratio) * angle) * scale) / lengthA
      ofB[x] = lengthB === 0 ? 0 : (Math.sin(ratio * angle) * scale) / lengthB
    }
  }
}

/** Where the rows of one image's channels lie. */
interface Stack {
  readonly data: Float32Array
  readonly start: number
  readonly channelStride: number
  readonly width: number
}

function writeRow(to: Stack, y: number, { a, b, width }: RowPair, { ofA, ofB }: Factors): void {
  for (let from = 0, at = to.start + y * width; from < a.length; from += width, at += to.channelStride) {
    for (let x = 0; x < width; x++) to.data[at + x] = a[from + x] * ofA[x] + b[from + x] * ofB[x]
  }
}

interface PassOptions {
  readonly channels: number
  readonly height: number
  checkpoint(): void
}

type Gather = (row: RowPair, y: number) => void

function runPass(to: Stack, ratios: Float32Array, gather: Gather, { channels, height, checkpoint }: PassOptions): void {
  const { width } = to
  const row = { a: new Float32Array(channels * width), b: new Float32Array(channels * width), ratios, width }
  const factors = { ofA: new Float64Array(width), ofB: new Float64Array(width) }
  for (let y = 0; y < height; y++) {
    checkpoint()
    gather(row, y)
    writeFactors(row, factors)
    writeRow(to, y, row, factors)
  }
}

function widen(from: Stack, to: Stack, steps: Steps, options: PassOptions): void {
  const { first, second, ratios } = steps
  const gather: Gather = ({ a, b, width }, y) => {
    for (let c = 0; c < options.channels; c++) {
      const at = from.start + c * from.channelStride + y * from.width
      for (let x = 0; x < width; x++) {
        a[c * width + x] = from.data[at + first[x]]
        b[c * width + x] = from.data[at + second[x]]
      }
    }
  }
  runPass(to, ratios, gather, options)
}

function heighten(from: Stack, to: Stack, steps: Steps, options: PassOptions): void {
  const { width } = to
  const rowRatios = new Float32Array(width)
  const gather: Gather = ({ a, b }, y) => {
    rowRatios.fill(steps.ratios[y])
    for (let c = 0; c < options.channels; c++) {
      const at = from.start + c * from.channelStride
      const [one, two] = [at + steps.first[y] * width, at + steps.second[y] * width]
      a.set(from.data.subarray(one, one + width), c * width)
      b.set(from.data.subarray(two, two + width), c * width)
    }
  }
  runPass(to, rowRatios, gather, options)
}

interface Images {
  readonly batch: number
  readonly channels: number
  /** Images that share one batch member: the frames of a video, else 1. */
  readonly frames: number
}

function* stacksOf(tensor: Tensor, { batch, channels, frames }: Images): Generator<Stack> {
  const [height, width] = tensor.shape.slice(-2)
  const plane = height * width
  for (let member = 0; member < batch; member++) {
    for (let frame = 0; frame < frames; frame++) {
      const start = (member * channels * frames + frame) * plane
      yield { data: tensor.data, start, channelStride: frames * plane, width }
    }
  }
}

/** Resizes [batch, channels, …, height, width]. */
export function bislerp(
  tensor: Tensor,
  { width, height }: { readonly width: number; readonly height: number },
  { allocate, checkpoint }: PixelWork,
): Tensor {
  const { shape } = tensor
  const [batch, channels, ...rest] = shape
  const [oldHeight, oldWidth] = shape.slice(-2)
  const images = { batch, channels, frames: rest.slice(0, -2).reduce((product, size) => product * size, 1) }
  const pass = (from: Tensor, to: Tensor, run: typeof widen, steps: Steps): Tensor => {
    const targets = stacksOf(to, images)
    const options = { channels, height: to.shape[to.shape.length - 2], checkpoint }
    for (const source of stacksOf(from, images)) run(source, targets.next().value as Stack, steps, options)
    return to
  }
  // An axis that keeps its length keeps its values.
  const leading = shape.slice(0, -2)
  const wide =
    width === oldWidth
      ? tensor
      : pass(tensor, allocate([...leading, oldHeight, width]), widen, createSteps(oldWidth, width))
  if (height === oldHeight) return wide
  return pass(wide, allocate([...leading, height, width]), heighten, createSteps(oldHeight, height))
}
