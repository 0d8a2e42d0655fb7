/**
 * Pillow's Lanczos resize on 8-bit pixels, bit for bit: weights in 22-bit fixed point, a rounded byte after the horizontal
 * pass and again after the vertical one, colours multiplied by alpha before and divided after.
 */
import { BYTE_TO_FLOAT, toBytes } from './bytes.ts'
import { inBlocks } from './map-pixels.ts'
import type { Plane, ResizeTarget } from './resize-float.ts'

const LOBES = 3
const PRECISION_BITS = 22
const ONE = 1 << PRECISION_BITS
const HALF = 1 << (PRECISION_BITS - 1)

export interface LanczosTable {
  readonly taps: number
  readonly starts: Int32Array
  readonly counts: Int32Array
  readonly weights: Int32Array
}

function sinc(x: number): number {
  if (x === 0) return 1
  const angle = x * Math.PI
  return Math.sin(angle) / angle
}

function lanczos(x: number): number {
  return x >= -LOBES && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0
}

/** null when the axis keeps its size: Pillow then skips the pass. */
export function createLanczosTable(inSize: number, outSize: number): LanczosTable | null {
  if (inSize === outSize) return null
  const scale = inSize / outSize
  const stretch = Math.max(scale, 1)
  const support = LOBES * stretch
  const taps = Math.ceil(support) * 2 + 1
  const table = {
    taps,
    starts: new Int32Array(outSize),
    counts: new Int32Array(outSize),
    weights: new Int32Array(outSize * taps),
  }
  const row = new Float64Array(taps)
  for (let target = 0; target < outSize; target++) {
    const centre = (target + 0.5) * scale
    const start = Math.max(0, Math.trunc(centre - support + 0.5))
    const count = Math.min(inSize, Math.trunc(centre + support + 0.5)) - start
    let sum = 0
    for (let tap = 0; tap < count; tap++) {
      row[tap] = lanczos((tap + start - centre + 0.5) / stretch)
      sum += row[tap]
    }
    table.starts[target] = start
    table.counts[target] = count
    for (let tap = 0; tap < count; tap++) {
      const weight = (sum === 0 ? row[tap] : row[tap] / sum) * ONE
      table.weights[target * taps + tap] = Math.trunc(weight < 0 ? weight - 0.5 : weight + 0.5)
    }
  }
  return table
}

interface Bytes {
  readonly data: Uint8ClampedArray
  readonly width: number
  readonly height: number
  readonly channels: number
}

function resizeColumns(source: Bytes, table: LanczosTable, width: number, checkpoint: () => void): Bytes {
  const { channels, height } = source
  const data = new Uint8ClampedArray(width * height * channels)
  const pass = channels === 3 ? horizontalRgb : horizontalAny
  for (let y = 0; y < height; y++) {
    checkpoint()
    pass(source, table, { data, y, width })
  }
  return { data, width, height, channels }
}

type HorizontalOut = { readonly data: Uint8ClampedArray; readonly y: number; readonly width: number }

// Clamped storage does the clipping to 0..255.
function horizontalRgb(source: Bytes, table: LanczosTable, { data, y, width }: HorizontalOut): void {
  const pixels = source.data
  const rowStart = y * source.width * 3
  let out = y * width * 3
  for (let x = 0; x < width; x++, out += 3) {
    let [red, green, blue] = [HALF, HALF, HALF]
    let at = rowStart + table.starts[x] * 3
    const first = x * table.taps
    const end = first + table.counts[x]
    for (let tap = first; tap < end; tap++, at += 3) {
      const weight = table.weights[tap]
      red += Math.imul(pixels[at], weight)
      green += Math.imul(pixels[at + 1], weight)
      blue += Math.imul(pixels[at + 2], weight)
    }
    data[out] = red >> PRECISION_BITS
    data[out + 1] = green >> PRECISION_BITS
    data[out + 2] = blue >> PRECISION_BITS
  }
}

function horizontalAny(source: Bytes, table: LanczosTable, { data, y, width }: HorizontalOut): void {
  const { channels, data: pixels } = source
  const rowStart = y * source.width * channels
  for (let x = 0; x < width; x++) {
    const first = x * table.taps
    for (let c = 0; c < channels; c++) {
      let sum = HALF
      let at = rowStart + table.starts[x] * channels + c
      for (let tap = first; tap < first + table.counts[x]; tap++, at += channels) {
        sum += Math.imul(pixels[at], table.weights[tap])
      }
      data[(y * width + x) * channels + c] = sum >> PRECISION_BITS
    }
  }
}

/** Sums whole rows: the inner loop runs along memory. */
function resizeRows(source: Bytes, table: LanczosTable, height: number, checkpoint: () => void): Bytes {
  const { channels, width, data: pixels } = source
  const rowLength = width * channels
  const data = new Uint8ClampedArray(rowLength * height)
  const sums = new Int32Array(rowLength)
  for (let y = 0; y < height; y++) {
    checkpoint()
    sums.fill(HALF)
    for (let tap = 0; tap < table.counts[y]; tap++) {
      const weight = table.weights[y * table.taps + tap]
      const from = (table.starts[y] + tap) * rowLength
      for (let i = 0; i < rowLength; i++) sums[i] += Math.imul(pixels[from + i], weight)
    }
    const to = y * rowLength
    for (let i = 0; i < rowLength; i++) data[to + i] = sums[i] >> PRECISION_BITS
  }
  return { data, width, height, channels }
}

function hasAlpha(channels: number): boolean {
  return channels === 4 || channels === 2
}

function multiplyByAlpha({ data, channels }: Bytes, checkpoint: () => void): void {
  inBlocks(data.length / channels, checkpoint, (from, to) => {
    for (let at = from * channels; at < to * channels; at += channels) {
      const alpha = data[at + channels - 1]
      for (let c = 0; c < channels - 1; c++) {
        const product = data[at + c] * alpha + 128
        data[at + c] = ((product >> 8) + product) >> 8
      }
    }
  })
}

function divideByAlpha({ data, channels }: Bytes, checkpoint: () => void): void {
  inBlocks(data.length / channels, checkpoint, (from, to) => {
    for (let at = from * channels; at < to * channels; at += channels) {
      const alpha = data[at + channels - 1]
      if (alpha === 0 || alpha === 255) continue
      for (let c = 0; c < channels - 1; c++) data[at + c] = Math.trunc((255 * data[at + c]) / alpha)
    }
  })
}

function readBytes({ data, start, rowStride, width, height, channels }: Plane, checkpoint: () => void): Bytes {
  const rowLength = width * channels
  const bytes = new Uint8ClampedArray(rowLength * height)
  for (let y = 0; y < height; y++) {
    checkpoint()
    toBytes(data, bytes, { from: start + y * rowStride, to: y * rowLength, count: rowLength })
  }
  return { data: bytes, width, height, channels }
}

export interface LanczosTables {
  readonly horizontal: LanczosTable | null
  readonly vertical: LanczosTable | null
}

/** Resizes one image of a batch. With nothing to resize, the rounding to 8 bit still happens. */
export function resizePlaneLanczos(
  source: Plane,
  target: ResizeTarget,
  { tables, checkpoint }: { readonly tables: LanczosTables; checkpoint(): void },
): void {
  let image = readBytes(source, checkpoint)
  const isResized = tables.horizontal !== null || tables.vertical !== null
  const usesAlpha = isResized && hasAlpha(source.channels)
  if (usesAlpha) multiplyByAlpha(image, checkpoint)
  if (tables.horizontal !== null) image = resizeColumns(image, tables.horizontal, target.width, checkpoint)
  if (tables.vertical !== null) image = resizeRows(image, tables.vertical, target.height, checkpoint)
  if (usesAlpha) divideByAlpha(image, checkpoint)
  const { data } = image
  inBlocks(data.length, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) target.data[target.start + i] = BYTE_TO_FLOAT[data[i]]
  })
}
