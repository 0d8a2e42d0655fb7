/** Pillow's Lanczos weights along one axis, in its 22-bit fixed point. */
import { PRECISION_BITS } from '../../simd/kernels/lanczos-rows.ts'

const LOBES = 3
const ONE = 1 << PRECISION_BITS

export interface LanczosTable {
  /** The most source pixels that any target pixel is made of. */
  readonly taps: number
  readonly starts: Int32Array
  readonly counts: Int32Array
  /** `taps` per target pixel; those beyond its count are 0. */
  readonly weights: Int32Array
}

function sinc(x: number): number {
  if (x === 0) return 1
  const angle = x * Math.PI
  return Math.sin(angle) / angle
}

function lanczos(x: number): number {
  return x >= -LOBES && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0
}

/** null when the axis keeps its size: Pillow then skips the pass. */
export function createLanczosTable(inSize: number, outSize: number): LanczosTable | null {
  if (inSize === outSize) return null
  const scale = inSize / outSize
  const stretch = Math.max(scale, 1)
  const support = LOBES * stretch
  const starts = new Int32Array(outSize)
  const counts = new Int32Array(outSize)
  for (let target = 0; target < outSize; target++) {
    const centre = (target + 0.5) * scale
    starts[target] = Math.max(0, Math.trunc(centre - support + 0.5))
    counts[target] = Math.min(inSize, Math.trunc(centre + support + 0.5)) - starts[target]
  }
  const taps = counts.reduce((most, count) => Math.max(most, count), 0)
  const weights = new Int32Array(outSize * taps)
  const row = new Float64Array(taps)
  for (let target = 0; target < outSize; target++) {
    const centre = (target + 0.5) * scale
    let sum = 0
    for (let tap = 0; tap < counts[target]; tap++) {
      row[tap] = lanczos((tap + starts[target] - centre + 0.5) / stretch)
      sum += row[tap]
    }
    for (let tap = 0; tap < counts[target]; tap++) {
      const weight = (sum === 0 ? row[tap] : row[tap] / sum) * ONE
      weights[target * taps + tap] = Math.trunc(weight < 0 ? weight - 0.5 : weight + 0.5)
    }
  }
  return { taps, starts, counts, weights }
}
