/**
 * Separable resizing in single precision. Each source row that is needed is resized horizontally once, kept in a small
 * ring while target rows use it, and combined vertically; so memory is touched in order and nothing is computed twice.
 */
import { type AxisTable, createAxisTable, type FloatMethod } from './axis-table.ts'

/** A part of an image, or all of it: where its rows begin and how far apart they are. */
export interface Plane {
  readonly data: Float32Array
  /** Index of the first value. */
  readonly start: number
  readonly rowStride: number
  readonly width: number
  readonly height: number
  readonly channels: number
}

export interface ResizeTarget {
  readonly data: Float32Array
  readonly start: number
  readonly width: number
  readonly height: number
}

type RowPass = (source: Float32Array, at: number, target: Float32Array) => void

/** Resizes one row; the number of taps decides which loop runs. */
function createRowPass({ taps, indexes, weights }: AxisTable, channels: number): RowPass {
  const offsets = indexes.map((index) => index * channels)
  if (taps === 1) return (source, at, target) => copyRow(source, at, { target, offsets, channels })
  if (taps === 2 && channels === 3) return (source, at, target) => twoTapRgb(source, at, { target, offsets, weights })
  if (taps === 4 && channels === 3) return (source, at, target) => fourTapRgb(source, at, { target, offsets, weights })
  return (source, at, target) => anyTaps(source, at, { target, offsets, weights, channels, taps })
}

interface RowWork {
  readonly target: Float32Array
  readonly offsets: Int32Array
  readonly weights: Float32Array
}

function copyRow(
  source: Float32Array,
  at: number,
  { target, offsets, channels }: { target: Float32Array; offsets: Int32Array; channels: number },
): void {
  if (channels === 3) {
    for (let x = 0, out = 0; x < offsets.length; x++, out += 3) {
      const from = at + offsets[x]
      target[out] = source[from]
      target[out + 1] = source[from + 1]
      target[out + 2] = source[from + 2]
    }
    return
  }
  for (let x = 0, out = 0; x < offsets.length; x++) {
    const from = at + offsets[x]
    for (let c = 0; c < channels; c++) target[out++] = source[from + c]
  }
}

function twoTapRgb(source: Float32Array, at: number, { target, offsets, weights }: RowWork): void {
  for (let tap = 0, out = 0; tap < offsets.length; tap += 2, out += 3) {
    const a = at + offsets[tap]
    const b = at + offsets[tap + 1]
    const wa = weights[tap]
    const wb = weights[tap + 1]
    target[out] = source[a] * wa + source[b] * wb
    target[out + 1] = source[a + 1] * wa + source[b + 1] * wb
    target[out + 2] = source[a + 2] * wa + source[b + 2] * wb
  }
}

function fourTapRgb(source: Float32Array, at: number, { target, offsets, weights }: RowWork): void {
  for (let tap = 0, out = 0; tap < offsets.length; tap += 4, out += 3) {
    const a = at + offsets[tap]
    const b = at + offsets[tap + 1]
    const c = at + offsets[tap + 2]
    const d = at + offsets[tap + 3]
    const wa = weights[tap]
    const wb = weights[tap + 1]
    const wc = weights[tap + 2]
    const wd = weights[tap + 3]
    target[out] = source[a] * wa + source[b] * wb + source[c] * wc + source[d] * wd
    target[out + 1] = source[a + 1] * wa + source[b + 1] * wb + source[c + 1] * wc + source[d + 1] * wd
    target[out + 2] = source[a + 2] * wa + source[b + 2] * wb + source[c + 2] * wc + source[d + 2] * wd
  }
}

function anyTaps(
  source: Float32Array,
  at: number,
  { target, offsets, weights, channels, taps }: RowWork & { channels: number; taps: number },
): void {
  for (let tap = 0, out = 0; tap < offsets.length; tap += taps, out += channels) {
    for (let c = 0; c < channels; c++) {
      let sum = 0
      for (let k = tap; k < tap + taps; k++) sum += source[at + offsets[k] + c] * weights[k]
      target[out + c] = sum
    }
  }
}

/** Weighted sum of whole rows. */
function combineRows(target: Float32Array, rows: readonly Float32Array[], weights: readonly number[]): void {
  const length = target.length
  if (rows.length === 1) {
    target.set(rows[0])
    return
  }
  if (rows.length === 4) {
    const [a, b, c, d] = rows
    const [wa, wb, wc, wd] = weights
    for (let i = 0; i < length; i++) target[i] = a[i] * wa + b[i] * wb + c[i] * wc + d[i] * wd
    return
  }
  const [a, b] = rows
  const [wa, wb] = weights
  for (let i = 0; i < length; i++) target[i] = a[i] * wa + b[i] * wb
  for (let k = 2; k < rows.length; k++) {
    const row = rows[k]
    const weight = weights[k]
    for (let i = 0; i < length; i++) target[i] += row[i] * weight
  }
}

export interface ResizeTables {
  readonly horizontal: AxisTable
  readonly vertical: AxisTable
}

type Size = { readonly width: number; readonly height: number }

export function createResizeTables(method: FloatMethod, from: Size, to: Size): ResizeTables {
  return {
    horizontal: createAxisTable(method, from.width, to.width),
    vertical: createAxisTable(method, from.height, to.height),
  }
}

/** Resizes one image of a batch. `checkpoint` is called once per target row. */
export function resizePlane(
  source: Plane,
  target: ResizeTarget,
  { tables, checkpoint }: { readonly tables: ResizeTables; checkpoint(): void },
): void {
  const { horizontal, vertical } = tables
  const { taps } = vertical
  const rowLength = target.width * source.channels
  const rowPass = createRowPass(horizontal, source.channels)
  // Rows of one target row lie within `taps` neighbours, so `row % taps` gives each a place of its own.
  const ring = Array.from({ length: taps }, () => new Float32Array(rowLength))
  const rowInPlace = new Int32Array(taps).fill(-1)

  function rowAt(row: number): Float32Array {
    const place = row % taps
    if (rowInPlace[place] !== row) {
      rowPass(source.data, source.start + row * source.rowStride, ring[place])
      rowInPlace[place] = row
    }
    return ring[place]
  }

  const rows: Float32Array[] = new Array(taps)
  const weights: number[] = new Array(taps)
  for (let y = 0; y < target.height; y++) {
    checkpoint()
    for (let tap = 0; tap < taps; tap++) {
      rows[tap] = rowAt(vertical.indexes[y * taps + tap])
      weights[tap] = vertical.weights[y * taps + tap]
    }
    const at = target.start + y * rowLength
    combineRows(target.data.subarray(at, at + rowLength), rows, weights)
  }
}
