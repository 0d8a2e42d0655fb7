/**
 * Resizing in single precision for methods that can do one axis after the other: each source row that is needed is resized
 * horizontally once, kept in a small ring while target rows use it, and combined vertically; so memory is touched in order
 * and nothing is computed twice.
 */
import { TAP_BYTES } from '../../simd/kernels/resize-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'

/**
 * Which source pixels make up a target pixel along one axis, and with what weights: computed once per resize, so that the
 * loops over pixels only multiply and add. Coordinates are rounded to single precision where PyTorch does, since a
 * double would fall on the other side of a pixel boundary now and then.
 */
type SeparableMethod = 'nearest-exact' | 'bicubic'
export type FloatMethod = SeparableMethod | 'bilinear'

interface AxisTable {
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

/** Pictures of one size, or the same part of each: where their rows begin and how far apart they are. */
export interface Planes {
  readonly data: Float32Array
  /** Index of the first value of the first picture. */
  readonly start: number
  readonly rowStride: number
  /** From one picture to the next. */
  readonly planeStride: number
  readonly width: number
  readonly height: number
  readonly channels: number
}

export interface Resize {
  readonly source: Planes
  readonly target: { readonly width: number; readonly height: number }
}

/** Rows of the target, made one by one in a workspace that whoever opened them disposes of. */
export interface ResizedRows {
  readonly space: Workspace
  /** The address of row `y` of the picture whose source begins at index `start`, until the next row is asked for. */
  rowAt(y: number, start: number): number
}

export const FLOAT_BYTES = 4
export const CHANNELS_AT_ONCE = 4

export function writeTable({ ints, floats }: Workspace, at: number, { table, channels }: TableOf): void {
  const { indexes, weights } = table
  for (let tap = 0, word = at / FLOAT_BYTES; tap < indexes.length; tap++, word += 2) {
    ints[word] = indexes[tap] * channels * FLOAT_BYTES
    floats[word + 1] = weights[tap]
  }
}

interface TableOf {
  readonly table: AxisTable
  readonly channels: number
}

/** Resizes the row at one address of the workspace into another. */
type RowPass = (source: number, target: number) => void

function createRowPass(space: Workspace, at: number, { table, channels }: TableOf): RowPass {
  writeTable(space, at, { table, channels })
  const { taps, indexes } = table
  const gather = taps === 1 ? space.run.gatherOne : space.run.gatherFour
  const end = at + indexes.length * TAP_BYTES
  const lastGroup = Math.ceil(channels / CHANNELS_AT_ONCE) - 1
  return (source, target) => {
    // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
    for (let group = lastGroup; group >= 0; group--) {
      const offset = group * CHANNELS_AT_ONCE * FLOAT_BYTES
      gather(target + offset, source + offset, at, end, channels * FLOAT_BYTES)
    }
  }
}

interface RowRing {
  /** Neighbouring rows get entries of their own as long as there are no more of them than entries. */
  readonly ring: readonly number[]
  /** Brings the values of a row to an address, in whatever form the ring holds them. */
  fill(address: number, values: Float32Array): void
}

/** Where a source row lies in the workspace. Rows that were used lately are still there. */
export function createSourceRows({ data, rowStride, width, channels }: Planes, { ring, fill }: RowRing) {
  // By their place in memory, which tells rows of different pictures apart.
  const held = new Float64Array(ring.length).fill(-1)
  return (row: number, start: number): number => {
    const entry = row % ring.length
    const from = start + row * rowStride
    if (held[entry] !== from) {
      fill(ring[entry], data.subarray(from, from + width * channels))
      held[entry] = from
    }
    return ring[entry]
  }
}

export function openSeparable(method: SeparableMethod, { source, target }: Resize): ResizedRows {
  const { channels } = source
  const horizontal = createAxisTable(method, source.width, target.width)
  const { taps, indexes, weights } = createAxisTable(method, source.height, target.height)
  const layout = new Layout()
  const bytes = target.width * channels * FLOAT_BYTES
  const given = layout.take(source.width * channels * FLOAT_BYTES)
  const ring = Array.from({ length: taps }, () => layout.take(bytes))
  const out = layout.take(bytes)
  const table = layout.take(horizontal.indexes.length * TAP_BYTES)
  const space = openWorkspace(layout)
  const passRow = createRowPass(space, table, { table: horizontal, channels })
  const rowOf = createSourceRows(source, {
    ring,
    fill(address, values) {
      space.load(given, values)
      passRow(given, address)
    },
  })
  return {
    space,
    rowAt(y, start) {
      const first = y * taps
      const row = (tap: number) => rowOf(indexes[first + tap], start)
      if (taps === 1) return row(0)
      space.run.combineFour(out, bytes, row(0), row(1), row(2), row(3), ...weights.subarray(first, first + 4))
      return out
    },
  }
}
