/** Histogram matching: for each of 256 levels of a channel, the level of a reference that as many pixels stay below. */
import { byteOf } from '../bytes.ts'
import { type Tensor, viewOf } from '../tensor.ts'

const LEVELS = 256
const LAST = LEVELS - 1
const BLOCK_VALUES = 262_144

/** The share of pixels up to each level, per channel, over the frames first..last of a batch. */
export function cumulativeShares(
  images: Tensor,
  { first, last, checkpoint }: { readonly first: number; readonly last: number; checkpoint(): void },
): Float32Array[] {
  const { height, width, channels, data } = viewOf(images)
  const counts = Array.from({ length: channels }, () => new Float64Array(LEVELS))
  const size = height * width * channels
  counts.forEach((perLevel, c) => {
    for (let at = first * size + c, done = 0; at < (last + 1) * size; at += channels, done++) {
      if (done % BLOCK_VALUES === 0) checkpoint()
      perLevel[byteOf(data[at])]++
    }
  })
  return counts.map((perLevel) => {
    let sum = 0
    const running = perLevel.map((count) => {
      sum += count
      return sum
    })
    return Float32Array.from(running, (below) => below / sum)
  })
}

/** Where each level goes, within 0..1. */
export function matchTable(source: Float32Array, reference: Float32Array): Float32Array {
  let level = 0
  // Both run upwards, so the search never has to go back.
  return source.map((share) => {
    while (level < LAST && reference[level] < share) level++
    return level / LAST
  })
}
