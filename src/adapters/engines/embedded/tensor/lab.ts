/**
 * Between sRGB and CIE Lab (D65). The curves are looked up in tables with straight lines between the entries, closer to
 * the formulas than single precision shows; colours beyond the tables go through the formulas.
 */
import type { Tensor } from './tensor.ts'
import type { PixelWork } from './upscale.ts'

// Differences between neighbouring entries fall below 1e-7 at this length, also where the curves are steepest.
const ENTRIES = 65_536
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

function lookUp(table: Float32Array, x: number, formula: (x: number) => number): number {
  if (!(x >= 0 && x <= 1)) return formula(x)
  const place = x * ENTRIES
  const entry = place | 0
  return table[entry] + (place - entry) * (table[entry + 1] - table[entry])
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
    const red = lookUp(linear, rgb[at], toLinear)
    const green = lookUp(linear, rgb[at + 1], toLinear)
    const blue = lookUp(linear, rgb[at + 2], toLinear)
    const x = lookUp(roots, (0.412453 * red + 0.35758 * green + 0.180423 * blue) / WHITE_X, toRoot)
    const y = lookUp(roots, 0.212671 * red + 0.71516 * green + 0.072169 * blue, toRoot)
    const z = lookUp(roots, (0.019334 * red + 0.119193 * green + 0.950227 * blue) / WHITE_Z, toRoot)
    lab[at] = 116 * y - 16
    lab[at + 1] = 500 * (x - y)
    lab[at + 2] = 200 * (y - z)
  }
}

function cubed(f: number): number {
  return f > CUBE_FROM ? f * f * f : (f - FOOT) / SLOPE
}

function held(value: number): number {
  return value < 0 ? 0 : value > 1 ? 1 : value
}

/** Writes one colour, held within 0..1. */
export function writeRgb(out: Float32Array, at: number, { light, a, b }: { light: number; a: number; b: number }): void {
  const gamma = gammaTable()
  const middle = (light + 16) / 116
  const x = cubed(a / 500 + middle) * WHITE_X
  const y = cubed(middle)
  const z = cubed(Math.max(0, middle - b / 200)) * WHITE_Z
  const red = 3.2404813432005266 * x - 1.5371515162713185 * y - 0.4985363261688878 * z
  const green = -0.9692549499965682 * x + 1.8759900014898907 * y + 0.0415559265582928 * z
  const blue = 0.0556466391351772 * x - 0.2040413383665112 * y + 1.0573110696453443 * z
  out[at] = held(lookUp(gamma, red, fromLinear))
  out[at + 1] = held(lookUp(gamma, green, fromLinear))
  out[at + 2] = held(lookUp(gamma, blue, fromLinear))
}
