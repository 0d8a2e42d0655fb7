/** Mean and spread of colours, and the affine map that gives one set of colours the mean and spread of another. */

import { byteOf } from '../bytes.ts'
import { clampToUnit } from '../channels.ts'
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'

interface ColorStatistics {
  readonly mean: readonly number[]
  /** How the three values vary together (population). */
  readonly covariance: Matrix3
}

/** x → matrix·x + offset. */
export interface ColorMap {
  readonly matrix: Matrix3
  readonly offset: readonly number[]
}

const EPSILON = 1e-6
const BLOCK_VALUES = 786_432

/** Adds up the values and the products of a frame's colours: everything that mean and covariance need, in one pass. */
function addMoments(colors: Float32Array, moments: Float64Array, checkpoint: () => void): void {
  let [a, b, c, aa, ab, ac, bb, bc, cc] = moments
  for (let at = 0; at < colors.length; at += 3) {
    if (at % BLOCK_VALUES === 0) checkpoint()
    const x = colors[at]
    const y = colors[at + 1]
    const z = colors[at + 2]
    a += x
    b += y
    c += z
    aa += x * x
    ab += x * y
    ac += x * z
    bb += y * y
    bc += y * z
    cc += z * z
  }
  moments.set([a, b, c, aa, ab, ac, bb, bc, cc])
}

/** Pooled over all frames. */
export function statisticsOf(frames: Iterable<Tensor>, checkpoint: () => void): ColorStatistics {
  const moments = new Float64Array(9)
  let pixels = 0
  for (const { data } of frames) {
    addMoments(data, moments, checkpoint)
    pixels += data.length / 3
  }
  const [a, b, c, aa, ab, ac, bb, bc, cc] = moments.map((sum) => sum / pixels)
  const covariance = [
    ...[aa - a * a, ab - a * b, ac - a * c],
    ...[ab - a * b, bb - b * b, bc - b * c],
    ...[ac - a * c, bc - b * c, cc - c * c],
  ]
  return { mean: [a, b, c], covariance }
}

function mapWith(matrix: Matrix3, from: ColorStatistics, to: ColorStatistics): ColorMap {
  const offset = to.mean.map(
    (mean, row) => mean - from.mean.reduce((sum, value, col) => sum + matrix[row * 3 + col] * value, 0),
  )
  return { matrix, offset }
}

/** Reinhard's map: every value by itself. */
export function deviationMap(from: ColorStatistics, to: ColorStatistics): ColorMap {
  const deviation = ({ covariance }: ColorStatistics, axis: number) =>
    Math.max(EPSILON, Math.sqrt(Math.max(0, covariance[axis * 4])))
  const [a, b, c] = [0, 1, 2].map((axis) => deviation(to, axis) / deviation(from, axis))
  return mapWith([a, 0, 0, 0, b, 0, 0, 0, c], from, to)
}

/** Monge and Kantorovich's map: the one that moves colours least and still gives them the other covariance. */
export function covarianceMap(from: ColorStatistics, to: ColorStatistics): ColorMap {
  const source = eigenOf(from.covariance)
  const roots = source.values.map((value) => Math.max(EPSILON, Math.sqrt(Math.max(0, value))))
  const forth = scaleColumns(source.vectors, roots)
  const between = eigenOf(multiply(multiply(transpose(forth), to.covariance), forth))
  const betweenRoots = between.values.map((value) => Math.sqrt(Math.max(0, value)))
  const half = multiply(scaleColumns(between.vectors, betweenRoots), transpose(between.vectors))
  const back = scaleColumns(
    source.vectors,
    roots.map((root) => 1 / root),
  )
  return mapWith(multiply(multiply(back, half), transpose(back)), from, to)
}

/** A 3×3 matrix as nine numbers, row by row. */
type Matrix3 = readonly number[]

const SIDE = [0, 1, 2] as const
const MAX_SWEEPS = 32

function multiply(a: Matrix3, b: Matrix3): Matrix3 {
  const dot = (row: number, col: number) =>
    a[row * 3] * b[col] + a[row * 3 + 1] * b[3 + col] + a[row * 3 + 2] * b[6 + col]
  return SIDE.flatMap((row) => SIDE.map((col) => dot(row, col)))
}

function transpose(m: Matrix3): Matrix3 {
  return SIDE.flatMap((row) => SIDE.map((col) => m[col * 3 + row]))
}

/** Every column times its own factor. */
function scaleColumns(m: Matrix3, factors: readonly number[]): Matrix3 {
  return m.map((value, index) => value * factors[index % 3])
}

interface Eigen {
  readonly values: readonly number[]
  /** One vector per column. */
  readonly vectors: Matrix3
}

/** The rotation that makes one off-diagonal element zero. */
function rotationFor(m: Matrix3, p: number, q: number): Matrix3 {
  const theta = (m[q * 3 + q] - m[p * 3 + p]) / (2 * m[p * 3 + q])
  const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.hypot(theta, 1))
  const cosine = 1 / Math.hypot(t, 1)
  const rotation = [1, 0, 0, 0, 1, 0, 0, 0, 1]
  rotation[p * 3 + p] = cosine
  rotation[q * 3 + q] = cosine
  rotation[p * 3 + q] = t * cosine
  rotation[q * 3 + p] = -t * cosine
  return rotation
}

/** Jacobi's method: rotate until nothing is left beside the diagonal. */
function eigenOf(symmetric: Matrix3): Eigen {
  let m = symmetric
  let vectors: Matrix3 = [1, 0, 0, 0, 1, 0, 0, 0, 1]
  for (let sweep = 0; sweep < MAX_SWEEPS; sweep++) {
    const rest = Math.abs(m[1]) + Math.abs(m[2]) + Math.abs(m[5])
    if (!(rest > Number.EPSILON * 1e-3 * (Math.abs(m[0]) + Math.abs(m[4]) + Math.abs(m[8])))) break
    for (const [p, q] of [
      [0, 1],
      [0, 2],
      [1, 2],
    ]) {
      if (m[p * 3 + q] === 0) continue
      const rotation = rotationFor(m, p, q)
      m = multiply(multiply(transpose(rotation), m), rotation)
      vectors = multiply(vectors, rotation)
    }
  }
  return { values: [m[0], m[4], m[8]], vectors }
}

// Histogram matching: for each of 256 levels of a channel, the level of a reference that as many pixels stay below.

const LEVELS = 256
const LAST = LEVELS - 1
const RANK_BLOCK = 262_144

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
      if (done % RANK_BLOCK === 0) checkpoint()
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

// Between sRGB and CIE Lab (D65). The curves are looked up in tables with straight lines between the entries, closer to
// the formulas than a picture could show; colours beyond the tables go through the formulas.

// Small enough for the cache, and off by 1e-6 at most where the curves bend most.
const ENTRIES = 16_384
const WHITE_X = 0.95047
const WHITE_Z = 1.08883
const ROOT_FROM = 0.008856
const CUBE_FROM = 0.2068966
const SLOPE = 7.787
const FOOT = 4 / 29

/** A function with a table of its values on 0..1, made when it is first asked for. */
function tabled(formula: (x: number) => number): () => Float32Array {
  let table: Float32Array | null = null
  return () => {
    table ??= Float32Array.from({ length: ENTRIES + 2 }, (_, i) => formula(i / ENTRIES))
    return table
  }
}

const toLinear = (x: number) => (x > 0.04045 ? ((x + 0.055) / 1.055) ** 2.4 : x / 12.92)
const fromLinear = (x: number) => (x > 0.0031308 ? 1.055 * x ** (1 / 2.4) - 0.055 : 12.92 * x)
const toRoot = (x: number) => (x > ROOT_FROM ? Math.cbrt(x) : SLOPE * x + FOOT)
const linearTable = tabled(toLinear)
const gammaTable = tabled(fromLinear)
const rootTable = tabled(toRoot)

/** Only for 0 <= x <= 1. */
function lookUp(table: Float32Array, x: number): number {
  const position = x * ENTRIES
  const entry = position | 0
  const value = table[entry]
  return value + (position - entry) * (table[entry + 1] - value)
}

const BLOCK_PIXELS = 65_536

/** Frame `index` of RGB images as Lab: [height, width, 3]. */
export function labOf(images: Tensor, index: number, { allocate, checkpoint }: PixelWork): Tensor {
  const [, height, width] = images.shape
  const lab = allocate([height, width, 3])
  const size = height * width * 3
  const source = images.data.subarray(index * size, (index + 1) * size)
  for (let from = 0; from < size; from += BLOCK_PIXELS * 3) {
    checkpoint()
    toLab(source, lab.data, { from, to: Math.min(from + BLOCK_PIXELS * 3, size) })
  }
  return lab
}

function toLab(rgb: Float32Array, lab: Float32Array, { from, to }: { from: number; to: number }): void {
  const linear = linearTable()
  const roots = rootTable()
  for (let at = from; at < to; at += 3) {
    const r = rgb[at]
    const g = rgb[at + 1]
    const b = rgb[at + 2]
    // Written so that NaN takes the slow way too.
    const isInside = r >= 0 && r <= 1 && g >= 0 && g <= 1 && b >= 0 && b <= 1
    const red = isInside ? lookUp(linear, r) : toLinear(r)
    const green = isInside ? lookUp(linear, g) : toLinear(g)
    const blue = isInside ? lookUp(linear, b) : toLinear(b)
    const x = (0.412453 / WHITE_X) * red + (0.35758 / WHITE_X) * green + (0.180423 / WHITE_X) * blue
    const y = 0.212671 * red + 0.71516 * green + 0.072169 * blue
    const z = (0.019334 / WHITE_Z) * red + (0.119193 / WHITE_Z) * green + (0.950227 / WHITE_Z) * blue
    // Colours inside have all three inside as well: the rows add up to no more than 1.
    const rootX = isInside ? lookUp(roots, x) : toRoot(x)
    const rootY = isInside ? lookUp(roots, y) : toRoot(y)
    const rootZ = isInside ? lookUp(roots, z) : toRoot(z)
    lab[at] = 116 * rootY - 16
    lab[at + 1] = 500 * (rootX - rootY)
    lab[at + 2] = 200 * (rootY - rootZ)
  }
}

function cubed(f: number): number {
  return f > CUBE_FROM ? f * f * f : (f - FOOT) / SLOPE
}

/** Lab colours as RGB, held within 0..1. */
export function writeRgb(lab: Float32Array, rgb: Float32Array, checkpoint: () => void): void {
  for (let from = 0; from < lab.length; from += BLOCK_PIXELS * 3) {
    checkpoint()
    toRgb(lab, rgb, { from, to: Math.min(from + BLOCK_PIXELS * 3, lab.length) })
  }
}

function toRgb(lab: Float32Array, rgb: Float32Array, { from, to }: { from: number; to: number }): void {
  const gamma = gammaTable()
  for (let at = from; at < to; at += 3) {
    const middle = (lab[at] + 16) / 116
    const x = cubed(lab[at + 1] / 500 + middle) * WHITE_X
    const y = cubed(middle)
    const z = cubed(Math.max(0, middle - lab[at + 2] / 200)) * WHITE_Z
    const red = 3.2404813432005266 * x - 1.5371515162713185 * y - 0.4985363261688878 * z
    const green = -0.9692549499965682 * x + 1.8759900014898907 * y + 0.0415559265582928 * z
    const blue = 0.0556466391351772 * x - 0.2040413383665112 * y + 1.0573110696453443 * z
    rgb[at] = lookUp(gamma, clampToUnit(red))
    rgb[at + 1] = lookUp(gamma, clampToUnit(green))
    rgb[at + 2] = lookUp(gamma, clampToUnit(blue))
  }
}
