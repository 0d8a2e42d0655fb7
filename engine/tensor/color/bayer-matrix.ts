/** The threshold pattern of ordered dithering: every matrix is built of four of the next smaller one. */
const { fround } = Math

// Where each quarter lies between the steps of the smaller matrix: upper left, upper right, lower left, lower right.
const OFFSETS = [-1.5, 0.5, 1.5, -0.5] as const

/** `side`² values around 0 within ±0.5, row by row. `side` is a power of two. */
export function bayerMatrix(side: number): Float32Array {
  if (side === 1) return new Float32Array(1)
  const half = side / 2
  const smaller = bayerMatrix(half)
  const places = side * side
  const matrix = new Float32Array(places)
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const quarter = (y < half ? 0 : 2) + (x < half ? 0 : 1)
      const scaled = fround(places * smaller[(y % half) * half + (x % half)])
      matrix[y * side + x] = fround(scaled + OFFSETS[quarter]) / places
    }
  }
  return matrix
}
