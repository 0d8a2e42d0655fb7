/**
 * Which source pixels make up a target pixel along one axis, and with what weights: computed once per resize, so that the
 * loops over pixels only multiply and add. Coordinates are rounded to single precision where PyTorch does, since a
 * double would fall on the other side of a pixel boundary now and then.
 */
export type SeparableMethod = 'nearest-exact' | 'bicubic'
export type FloatMethod = SeparableMethod | 'bilinear'

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

/** `scale * (target + 0.5) - 0.5`, rounded once: the product of two singles is exact in a double. */
function centreOf(target: number, scale: number): number {
  return fround(scale * (target + 0.5) - 0.5)
}

function bilinear(inSize: number, outSize: number): AxisTable {
  const scale = fround(inSize / outSize)
  return fill(outSize, 2, (target, set) => {
    const at = Math.max(0, centreOf(target, scale))
    const first = Math.min(Math.floor(at), inSize - 1)
    const ratio = Math.min(fround(at - first), 1)
    set(0, first, fround(1 - ratio))
    set(1, clampIndex(first + 1, inSize), ratio)
  })
}

/** Weight of a pixel at most 1 away. Rounded where PyTorch's own code is, and nowhere else: some operations are fused. */
function cubicNear(x: number): number {
  const slope = fround((CUBIC_A + 2) * x - (CUBIC_A + 3))
  return fround(fround(fround(slope * x) * x) + 1)
}

/** Weight of a pixel between 1 and 2 away. */
function cubicFar(x: number): number {
  const slope = fround(CUBIC_A * x - 5 * CUBIC_A)
  const curve = fround(slope * x + 8 * CUBIC_A)
  return fround(fround(curve * x) - 4 * CUBIC_A)
}

function bicubic(inSize: number, outSize: number): AxisTable {
  const scale = fround(inSize / outSize)
  return fill(outSize, 4, (target, set) => {
    const at = centreOf(target, scale)
    const first = Math.floor(at)
    const before = fround(at - first)
    const behind = fround(1 - before)
    const weights = [cubicFar(fround(before + 1)), cubicNear(before), cubicNear(behind), cubicFar(fround(behind + 1))]
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
  // With equal sizes this one reduces to the pixel itself, exactly; one tap is then the cheapest way to say so.
  const isPlainCopy = method === 'bicubic' && inSize === outSize
  return BUILDERS[isPlainCopy ? 'nearest-exact' : method](inSize, outSize)
}
