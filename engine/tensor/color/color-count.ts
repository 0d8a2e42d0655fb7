/**
 * The distinct colours of an image and how often each occurs. Beyond 65536 colours the lowest bits are dropped until they
 * are few enough, as Pillow does; the sums keep the full values, so means stay exact.
 */
/** A colour's level on each axis, and the number and the sums of the pixels that have it. */
export interface ColorList {
  readonly levels: readonly [Uint8Array, Uint8Array, Uint8Array]
  readonly counts: Float64Array
  readonly sums: readonly [Float64Array, Float64Array, Float64Array]
}

const MAX_COLORS = 65_536
const BITS = 8
const BLOCK_PIXELS = 262_144
// Four places per colour keep the searches short.
const TABLE_SIZE = MAX_COLORS * 4
const EMPTY = -1

function eachBlock(count: number, checkpoint: () => void, work: (from: number, to: number) => void): void {
  for (let from = 0; from < count; from += BLOCK_PIXELS) {
    checkpoint()
    work(from * 3, Math.min(from + BLOCK_PIXELS, count) * 3)
  }
}

function countDistinct(pixels: Uint8Array, shift: number, checkpoint: () => void): number {
  const bits = BITS - shift
  const seen = new Uint8Array(2 ** Math.max(0, bits * 3 - 3))
  let distinct = 0
  eachBlock(pixels.length / 3, checkpoint, (from, to) => {
    for (let at = from; at < to; at += 3) {
      const color =
        ((pixels[at] >> shift) << (2 * bits)) | ((pixels[at + 1] >> shift) << bits) | (pixels[at + 2] >> shift)
      const flag = 1 << (color & 7)
      if ((seen[color >> 3] & flag) === 0) {
        seen[color >> 3] |= flag
        distinct++
      }
    }
  })
  return distinct
}

/** How many low bits must go, and what is left then. */
function fewEnough(pixels: Uint8Array, checkpoint: () => void): { shift: number; distinct: number } {
  for (let shift = 0; ; shift++) {
    const distinct = countDistinct(pixels, shift, checkpoint)
    if (distinct <= MAX_COLORS) return { shift, distinct }
  }
}

export function collectColors(pixels: Uint8Array, checkpoint: () => void): ColorList {
  const { shift, distinct } = fewEnough(pixels, checkpoint)
  const levels = [0, 1, 2].map(() => new Uint8Array(distinct)) as unknown as ColorList['levels']
  const sums = [0, 1, 2].map(() => new Float64Array(distinct)) as unknown as ColorList['sums']
  const counts = new Float64Array(distinct)
  const places = new Int32Array(TABLE_SIZE).fill(EMPTY)
  const keys = new Int32Array(distinct)
  let known = 0
  eachBlock(pixels.length / 3, checkpoint, (from, to) => {
    for (let at = from; at < to; at += 3) {
      const [red, green, blue] = [pixels[at], pixels[at + 1], pixels[at + 2]]
      const key = ((red >> shift) << 16) | ((green >> shift) << 8) | (blue >> shift)
      let place = (Math.imul(key, 0x9e3779b1) >>> 14) & (TABLE_SIZE - 1)
      while (places[place] !== EMPTY && keys[places[place]] !== key) place = (place + 1) & (TABLE_SIZE - 1)
      if (places[place] === EMPTY) {
        places[place] = known
        keys[known] = key
        levels[0][known] = red >> shift
        levels[1][known] = green >> shift
        levels[2][known] = blue >> shift
        known++
      }
      const index = places[place]
      counts[index]++
      sums[0][index] += red
      sums[1][index] += green
      sums[2][index] += blue
    }
  })
  return { levels, counts, sums }
}
