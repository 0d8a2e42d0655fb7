/**
 * Between sRGB and CIE Lab (D65). The curves are looked up in tables with straight lines between the entries, closer to
 * the formulas than a picture could show; colours beyond the tables go through the formulas.
 */
import { clampToUnit } from '../map-pixels.ts'
import type { PixelWork, Tensor } from '../tensor.ts'

// Small enough for the cache, and off by 1e-6 at most where the curves bend most.
const ENTRIES = 16_384
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

/** Only for 0 <= x <= 1. */
function lookUp(table: Float32Array, x: number): number {
  const position = x * ENTRIES
  const entry = position | 0
  const value = table[entry]
  return value + (position - entry) * (table[entry + 1] - value)
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
    const r = rgb[at]
    const g = rgb[at + 1]
    const b = rgb[at + 2]
    // Written so that NaN takes the slow way too.
    const isInside = r >= 0 && r <= 1 && g >= 0 && g <= 1 && b >= 0 && b <= 1
    const red = isInside ? lookUp(linear, r) : toLinear(r)
    const green = isInside ? lookUp(linear, g) : toLinear(g)
    const blue = isInside ? lookUp(linear, b) : toLinear(b)
    const x = (0.412453 / WHITE_X) * red + (0.35758 / WHITE_X) * green + (0.180423 / WHITE_X) * blue
    const y = 0.212671 * red + 0.71516 * green + 0.072169 * blue
    const z = (0.019334 / WHITE_Z) * red + (0.119193 / WHITE_Z) * green + (0.950227 / WHITE_Z) * blue
    // Colours inside have all three inside as well: the rows add up to no more than 1.
    const rootX = isInside ? lookUp(roots, x) : toRoot(x)
    const rootY = isInside ? lookUp(roots, y) : toRoot(y)
    const rootZ = isInside ? lookUp(roots, z) : toRoot(z)
    lab[at] = 116 * rootY - 16
    lab[at + 1] = 500 * (rootX - rootY)
    lab[at + 2] = 200 * (rootY - rootZ)
  }
}

function cubed(f: number): number {
  return f > CUBE_FROM ? f * f * f : (f - FOOT) / SLOPE
}

/** Lab colours as RGB, held within 0..1. */
export function writeRgb(lab: Float32Array, rgb: Float32Array, checkpoint: () => void): void {
  for (let from = 0; from < lab.length; from += BLOCK_PIXELS * 3) {
    checkpoint()
    toRgb(lab, rgb, { from, to: Math.min(from + BLOCK_PIXELS * 3, lab.length) })
  }
}

function toRgb(lab: Float32Array, rgb: Float32Array, { from, to }: { from: number; to: number }): void {
  const gamma = gammaTable()
  for (let at = from; at < to; at += 3) {
    const middle = (lab[at] + 16) / 116
    const x = cubed(lab[at + 1] / 500 + middle) * WHITE_X
    const y = cubed(middle)
    const z = cubed(Math.max(0, middle - lab[at + 2] / 200)) * WHITE_Z
    const red = 3.2404813432005266 * x - 1.5371515162713185 * y - 0.4985363261688878 * z
    const green = -0.9692549499965682 * x + 1.8759900014898907 * y + 0.0415559265582928 * z
    const blue = 0.0556466391351772 * x - 0.2040413383665112 * y + 1.0573110696453443 * z
    rgb[at] = lookUp(gamma, clampToUnit(red))
    rgb[at + 1] = lookUp(gamma, clampToUnit(green))
    rgb[at + 2] = lookUp(gamma, clampToUnit(blue))
  }
}
