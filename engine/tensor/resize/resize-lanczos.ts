/**
 * Pillow's Lanczos resize on 8-bit pixels, bit for bit: weights in 22-bit fixed point, a rounded byte after the horizontal
 * pass and again after the vertical one, colours multiplied by alpha before and divided after. Source rows go through the
 * horizontal pass once, in order, and stay in a ring for as long as target rows need them.
 */

import { unknownPixels } from '../../node/node-error.ts'
import { LOW_BITS, PAIR_BYTES, PRECISION_BITS, ROW_PAIR_BYTES } from '../../simd/kernels/lanczos-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import { createSourceRows, type Planes, type Resize, type ResizedRows } from './resize-float.ts'

// Pillow's Lanczos weights along one axis, in its 22-bit fixed point.

const LOBES = 3
const ONE = 1 << PRECISION_BITS

interface LanczosTable {
  /** The most source pixels that any target pixel is made of. */
  readonly taps: number
  readonly starts: Int32Array
  readonly counts: Int32Array
  /** `taps` per target pixel; those beyond its count are 0. */
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
  const starts = new Int32Array(outSize)
  const counts = new Int32Array(outSize)
  for (let target = 0; target < outSize; target++) {
    const centre = (target + 0.5) * scale
    starts[target] = Math.max(0, Math.trunc(centre - support + 0.5))
    counts[target] = Math.min(inSize, Math.trunc(centre + support + 0.5)) - starts[target]
  }
  const taps = counts.reduce((most, count) => Math.max(most, count), 0)
  const weights = new Int32Array(outSize * taps)
  const row = new Float64Array(taps)
  for (let target = 0; target < outSize; target++) {
    const centre = (target + 0.5) * scale
    let sum = 0
    for (let tap = 0; tap < counts[target]; tap++) {
      row[tap] = lanczos((tap + starts[target] - centre + 0.5) / stretch)
      sum += row[tap]
    }
    for (let tap = 0; tap < counts[target]; tap++) {
      const weight = (sum === 0 ? row[tap] : row[tap] / sum) * ONE
      weights[target * taps + tap] = Math.trunc(weight < 0 ? weight - 0.5 : weight + 0.5)
    }
  }
  return { taps, starts, counts, weights }
}

interface LanczosTables {
  readonly horizontal: LanczosTable | null
  readonly vertical: LanczosTable | null
}

const FLOAT_BYTES = 4
const INT_BYTES = 4
/** Pixels that are still to be resized take four bytes, whatever they hold. */
const PIXEL_BYTES = 4
const LOW_MASK = (1 << LOW_BITS) - 1

const pairsOf = (taps: number) => Math.ceil(taps / 2)

/** Two weights in the form of the kernels: their high parts in one word, their low parts in the next. */
function writeWeights(ints: Int32Array, word: number, [first, second]: readonly [number, number]): void {
  ints[word] = ((first >> LOW_BITS) & 0xffff) | ((second >> LOW_BITS) << 16)
  ints[word + 1] = (first & LOW_MASK) | ((second & LOW_MASK) << 16)
}

const rowTableBytes = (taps: number) => INT_BYTES + pairsOf(taps) * PAIR_BYTES

function writeRowTable(ints: Int32Array, at: number, { taps, starts, weights }: LanczosTable): void {
  let word = at / INT_BYTES
  starts.forEach((start, target) => {
    ints[word++] = start * PIXEL_BYTES
    for (let tap = 0; tap < taps; tap += 2, word += 2) {
      const first = target * taps + tap
      writeWeights(ints, word, [weights[first], tap + 1 < taps ? weights[first + 1] : 0])
    }
  })
}

function multiplyByAlpha(row: Uint8Array, channels: number): void {
  for (let at = 0; at + PIXEL_BYTES <= row.length; at += PIXEL_BYTES) {
    const alpha = row[at + channels - 1]
    for (let c = 0; c < channels - 1; c++) {
      const product = row[at + c] * alpha + 128
      row[at + c] = ((product >> 8) + product) >> 8
    }
  }
}

function divideByAlpha(row: Uint8Array, channels: number): void {
  for (let at = 0; at < row.length; at += channels) {
    const alpha = row[at + channels - 1]
    if (alpha === 0 || alpha === 255) continue
    for (let c = 0; c < channels - 1; c++) row[at + c] = Math.min(255, Math.trunc((255 * row[at + c]) / alpha))
  }
}

interface Addresses {
  readonly floats: number
  readonly pixels: number
  readonly rowTable: number
  readonly ring: readonly number[]
  readonly columnTable: number
  readonly bytes: number
  readonly out: number
  readonly layout: Layout
}

function layOut({ source, target }: Resize, { horizontal, vertical }: LanczosTables): Addresses {
  const layout = new Layout()
  const rowBytes = target.width * source.channels
  const pad = PIXEL_BYTES * ((horizontal?.taps ?? 0) + 1)
  return {
    floats: layout.take(source.width * source.channels * FLOAT_BYTES),
    // Taps without weight are read too: they may lie behind the row.
    pixels: layout.take(source.width * PIXEL_BYTES + pad),
    rowTable: layout.take(horizontal === null ? 0 : target.width * rowTableBytes(horizontal.taps)),
    ring: Array.from({ length: vertical?.taps ?? 1 }, () => layout.take(rowBytes)),
    columnTable: layout.take(pairsOf(vertical?.taps ?? 0) * ROW_PAIR_BYTES),
    bytes: layout.take(rowBytes),
    out: layout.take(rowBytes * FLOAT_BYTES),
    layout,
  }
}

interface RowsOf {
  readonly source: Planes
  readonly horizontal: LanczosTable | null
  readonly addresses: Addresses
  readonly usesAlpha: boolean
}

/** Brings a row of the source to an address, as bytes in the target's width. */
function createRowFill(space: Workspace, { source, horizontal, addresses, usesAlpha }: RowsOf) {
  const { run, ints, bytes } = space
  const { channels, width } = source
  const { pixels, rowTable } = addresses
  const floatsEnd = addresses.floats + width * channels * FLOAT_BYTES
  if (horizontal !== null) writeRowTable(ints, rowTable, horizontal)
  const entryBytes = rowTableBytes(horizontal?.taps ?? 0)
  const tableEnd = rowTable + (horizontal?.starts.length ?? 0) * entryBytes

  return (target: number, values: Float32Array): void => {
    space.load(addresses.floats, values)
    if (horizontal === null && !usesAlpha) {
      run.floatsToBytes(target, addresses.floats, floatsEnd, channels * FLOAT_BYTES, channels)
      return
    }
    run.floatsToBytes(pixels, addresses.floats, floatsEnd, channels * FLOAT_BYTES, PIXEL_BYTES)
    if (usesAlpha) multiplyByAlpha(bytes.subarray(pixels, pixels + width * PIXEL_BYTES), channels)
    if (horizontal !== null) {
      run.lanczosRow(target, pixels, rowTable, tableEnd, entryBytes - INT_BYTES, channels)
      return
    }
    for (let at = pixels, to = target, x = 0; x < width; x++, at += PIXEL_BYTES) {
      for (let c = 0; c < channels; c++) bytes[to++] = bytes[at + c]
    }
  }
}

interface ColumnOf {
  readonly vertical: LanczosTable
  readonly addresses: Addresses
  /** Where a source row lies as bytes in the target's width. */
  readonly rowAt: (row: number) => number
  readonly rowBytes: number
}

/** Writes target row `y` as bytes and answers where. */
function sumColumn({ run, ints }: Workspace, { vertical, addresses, rowAt, rowBytes }: ColumnOf, y: number): number {
  const { taps, starts, counts, weights } = vertical
  const [start, count] = [starts[y], counts[y]]
  let word = addresses.columnTable / INT_BYTES
  for (let tap = 0; tap < count; tap += 2, word += ROW_PAIR_BYTES / INT_BYTES) {
    const isPair = tap + 1 < count
    ints[word] = rowAt(start + tap)
    ints[word + 1] = isPair ? rowAt(start + tap + 1) : ints[word]
    writeWeights(ints, word + 2, [weights[y * taps + tap], isPair ? weights[y * taps + tap + 1] : 0])
  }
  run.lanczosColumn(addresses.bytes, rowBytes, addresses.columnTable, word * INT_BYTES)
  return addresses.bytes
}

/** With nothing to resize, the rounding to 8 bit still happens. */
export function openLanczos({ source, target }: Resize): ResizedRows {
  const { channels } = source
  if (channels > PIXEL_BYTES) throw unknownPixels(channels)
  const horizontal = createLanczosTable(source.width, target.width)
  const vertical = createLanczosTable(source.height, target.height)
  const usesAlpha = (horizontal !== null || vertical !== null) && (channels === 4 || channels === 2)
  const rowBytes = target.width * channels
  const addresses = layOut({ source, target }, { horizontal, vertical })
  const space = openWorkspace(addresses.layout)
  const fill = createRowFill(space, { source, horizontal, addresses, usesAlpha })
  const rowOf = createSourceRows(source, { ring: addresses.ring, fill })
  function bytesAt(y: number, start: number): number {
    if (vertical !== null) {
      return sumColumn(space, { vertical, addresses, rowAt: (row) => rowOf(row, start), rowBytes }, y)
    }
    // A row in the ring could be asked for again, and its alpha must be divided out only once.
    space.bytes.copyWithin(addresses.bytes, rowOf(y, start), rowOf(y, start) + rowBytes)
    return addresses.bytes
  }
  return {
    space,
    rowAt(y, start) {
      const row = bytesAt(y, start)
      if (usesAlpha) divideByAlpha(space.bytes.subarray(row, row + rowBytes), channels)
      space.run.bytesToFloats(addresses.out, row, row + rowBytes)
      return addresses.out
    },
  }
}
