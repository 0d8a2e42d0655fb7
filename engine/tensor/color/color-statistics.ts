/** Mean and spread of colours, and the affine map that gives one set of colours the mean and spread of another. */
import type { Tensor } from '../tensor.ts'

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
