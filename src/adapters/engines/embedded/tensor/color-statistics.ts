/** Mean and spread of colours, and the affine map that gives one set of colours the mean and spread of another. */
import { eigenOf, type Matrix3, multiply, scaleColumns, transpose } from './symmetric-matrix.ts'
import type { Tensor } from './tensor.ts'

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

function meanOf(colors: Float32Array, checkpoint: () => void): number[] {
  let [a, b, c] = [0, 0, 0]
  for (let at = 0; at < colors.length; at += 3) {
    if (at % BLOCK_VALUES === 0) checkpoint()
    a += colors[at]
    b += colors[at + 1]
    c += colors[at + 2]
  }
  const count = colors.length / 3
  return [a / count, b / count, c / count]
}

function covarianceOf(colors: Float32Array, mean: readonly number[], checkpoint: () => void): Matrix3 {
  const [meanA, meanB, meanC] = mean
  let [aa, ab, ac, bb, bc, cc] = [0, 0, 0, 0, 0, 0]
  for (let at = 0; at < colors.length; at += 3) {
    if (at % BLOCK_VALUES === 0) checkpoint()
    const a = colors[at] - meanA
    const b = colors[at + 1] - meanB
    const c = colors[at + 2] - meanC
    aa += a * a
    ab += a * b
    ac += a * c
    bb += b * b
    bc += b * c
    cc += c * c
  }
  const count = colors.length / 3
  return [aa, ab, ac, ab, bb, bc, ac, bc, cc].map((sum) => sum / count)
}

/** Pooled over frames of equal size; `frame` makes each of them again for the second pass. */
export function statisticsOf(frames: number, frame: (index: number) => Tensor, checkpoint: () => void): ColorStatistics {
  const averaged = (per: (colors: Float32Array) => readonly number[]) => {
    let sums: readonly number[] | null = null
    for (let index = 0; index < frames; index++) {
      const part = per(frame(index).data)
      sums = sums === null ? part : sums.map((sum, place) => sum + part[place])
    }
    return (sums ?? []).map((sum) => sum / frames)
  }
  const mean = averaged((colors) => meanOf(colors, checkpoint))
  return { mean, covariance: averaged((colors) => covarianceOf(colors, mean, checkpoint)) }
}

function mapWith(matrix: Matrix3, from: ColorStatistics, to: ColorStatistics): ColorMap {
  const offset = to.mean.map(
    (mean, row) => mean - from.mean.reduce((sum, value, col) => sum + matrix[row * 3 + col] * value, 0),
  )
  return { matrix, offset }
}

/** Reinhard's map: every value by itself. */
export function deviationMap(from: ColorStatistics, to: ColorStatistics): ColorMap {
  const deviation = ({ covariance }: ColorStatistics, axis: number) => Math.max(EPSILON, Math.sqrt(covariance[axis * 4]))
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
