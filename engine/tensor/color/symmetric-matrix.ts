/** The little linear algebra that colour statistics need: 3×3 matrices as nine numbers, row by row. */
export type Matrix3 = readonly number[]

const SIDE = [0, 1, 2] as const
const MAX_SWEEPS = 32

export function multiply(a: Matrix3, b: Matrix3): Matrix3 {
  const dot = (row: number, col: number) =>
    a[row * 3] * b[col] + a[row * 3 + 1] * b[3 + col] + a[row * 3 + 2] * b[6 + col]
  return SIDE.flatMap((row) => SIDE.map((col) => dot(row, col)))
}

export function transpose(m: Matrix3): Matrix3 {
  return SIDE.flatMap((row) => SIDE.map((col) => m[col * 3 + row]))
}

/** Every column times its own factor. */
export function scaleColumns(m: Matrix3, factors: readonly number[]): Matrix3 {
  return m.map((value, place) => value * factors[place % 3])
}

export interface Eigen {
  readonly values: readonly number[]
  /** One vector per column. */
  readonly vectors: Matrix3
}

/** The rotation that makes one off-diagonal place zero. */
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
export function eigenOf(symmetric: Matrix3): Eigen {
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
