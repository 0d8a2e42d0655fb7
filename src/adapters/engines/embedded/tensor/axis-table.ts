/**
 * Which source pixels make up a target pixel along one axis, and with what weights: computed once per resize, so that the
 * loops over pixels only multiply and add. Coordinates are rounded to single precision where PyTorch does, since a
 * double would fall on the other side of a pixel boundary now and then.
 */
export type FloatMethod = 'nearest-exact' | 'bilinear' | 'bicubic'

export interface AxisTable {
  /** Source pixels per target pixel: 1, 2 or 4. */
  readonly taps: number
  /** `taps` source indexes per target index, all inside the source. */
  readonly indexes: Int32Array
  readonly weights: Float32Array
}

const CUBIC_A = -0.75
const { fround } = Math

function fill(
  outSize: number,
  taps: number,
  write: (target: number, set: (tap: number, index: number, weight: number) => void) => void,
): AxisTable {
  const indexes = new Int32Array(outSize * taps)
  const weights = new Float32Array(outSize * taps)
  for (let target = 0; target < outSize; target++) {
    write(target, (tap, index, weight) => {
      indexes[target * taps + tap] = index
      weights[target * taps + tap] = weight
    })
  }
  return { taps, indexes, weights }
}

function clampIndex(index: number, size: number): number {
  return Math.max(0, Math.min(index, size - 1))
}

function nearestExact(inSize: number, outSize: number): AxisTable {
  const scale = fround(inSize / outSize)
  return fill(outSize, 1, (target, set) => {
    set(0, clampIndex(Math.floor(fround((target + 0.5) * scale)), inSize), 1)
  })
}

function bilinear(inSize: number, outSize: number): AxisTable {
  const scale = fround(inSize / outSize)
  return fill(outSize, 2, (target, set) => {
    const at = Math.max(0, fround(fround(scale * (target + 0.5)) - 0.5))
    const first = Math.min(Math.floor(at), inSize - 1)
    const ratio = fround(at - first)
    set(0, first, 1 - ratio)
    set(1, clampIndex(first + 1, inSize), ratio)
  })
}

function cubicNear(x: number): number {
  return ((CUBIC_A + 2) * x - (CUBIC_A + 3)) * x * x + 1
}

function cubicFar(x: number): number {
  return ((CUBIC_A * x - 5 * CUBIC_A) * x + 8 * CUBIC_A) * x - 4 * CUBIC_A
}

function bicubic(inSize: number, outSize: number): AxisTable {
  const scale = fround(inSize / outSize)
  return fill(outSize, 4, (target, set) => {
    const at = fround(fround(scale * (target + 0.5)) - 0.5)
    const first = Math.floor(at)
    const ratio = fround(at - first)
    const weights = [cubicFar(ratio + 1), cubicNear(ratio), cubicNear(1 - ratio), cubicFar(2 - ratio)]
    weights.forEach((weight, tap) => {
      set(tap, clampIndex(first - 1 + tap, inSize), weight)
    })
  })
}

const BUILDERS: Readonly<Record<FloatMethod, (inSize: number, outSize: number) => AxisTable>> = {
  'nearest-exact': nearestExact,
  bilinear,
  bicubic,
}

export function createAxisTable(method: FloatMethod, inSize: number, outSize: number): AxisTable {
  // With equal sizes every method reduces to the pixel itself, exactly; one tap is then the cheapest way to say so.
  return BUILDERS[inSize === outSize ? 'nearest-exact' : method](inSize, outSize)
}
