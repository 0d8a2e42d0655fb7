/** Mean and spread of colours, and the affine map that gives one set of colours the mean and spread of another. */

import type { Tensor } from '../tensor.ts'
import { eigenOf, type Matrix3, multiply, scaleColumns, transpose } from './symmetric-matrix.ts'

export interface ColorStatistics {
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
