/**
 * Porter and Duff's ways of laying one picture over another, and ComfyUI's additions to them. Colours are multiplied by
 * their alphas first; nearly every mode is then a weighted sum whose weights and alpha follow from the two alphas, so
 * that a mode is a row of factors.
 */
import { clampToUnit } from '../channels.ts'

/** With source colour S and alpha s, destination colour D and alpha d (colours multiplied by their alphas): */
interface Mode {
  /** Factors of s, d and sd in the alpha of the result. */
  readonly alpha: readonly [s: number, d: number, both: number]
  /** Weight of S: a constant and a factor of d. */
  readonly source: readonly [constant: number, d: number]
  /** Weight of D: a constant and a factor of s. */
  readonly destination: readonly [constant: number, s: number]
  /** Weight of SD. */
  readonly product?: number
  /** The darker or the lighter of S and D is added. */
  readonly extreme?: 'min' | 'max'
  /** Alpha and colour are limited to 0..1 before the colour is divided by alpha. */
  readonly isClamped?: true
}

const UNION = [1, 1, -1] as const
const NOTHING = [0, 0] as const
const WHOLE = [1, 0] as const
const INSIDE = [0, 1] as const
const OUTSIDE = [1, -1] as const

/** Every mode but OVERLAY, whose sum depends on the colours. */
const SUMS = {
  ADD: { alpha: [1, 1, 0], source: WHOLE, destination: WHOLE, isClamped: true },
  CLEAR: { alpha: [0, 0, 0], source: NOTHING, destination: NOTHING },
  DARKEN: { alpha: UNION, source: OUTSIDE, destination: OUTSIDE, extreme: 'min' },
  DST: { alpha: [0, 1, 0], source: NOTHING, destination: WHOLE },
  DST_ATOP: { alpha: [1, 0, 0], source: OUTSIDE, destination: INSIDE },
  DST_IN: { alpha: [0, 0, 1], source: NOTHING, destination: INSIDE },
  DST_OUT: { alpha: [0, 1, -1], source: NOTHING, destination: OUTSIDE },
  DST_OVER: { alpha: UNION, source: OUTSIDE, destination: WHOLE },
  LIGHTEN: { alpha: UNION, source: OUTSIDE, destination: OUTSIDE, extreme: 'max' },
  MULTIPLY: { alpha: [0, 0, 1], source: NOTHING, destination: NOTHING, product: 1 },
  SCREEN: { alpha: UNION, source: WHOLE, destination: WHOLE, product: -1 },
  SRC: { alpha: [1, 0, 0], source: WHOLE, destination: NOTHING },
  SRC_ATOP: { alpha: [0, 1, 0], source: INSIDE, destination: OUTSIDE },
  SRC_IN: { alpha: [0, 0, 1], source: INSIDE, destination: NOTHING },
  SRC_OUT: { alpha: [1, 0, -1], source: OUTSIDE, destination: NOTHING },
  SRC_OVER: { alpha: UNION, source: WHOLE, destination: OUTSIDE },
  XOR: { alpha: [1, 1, -2], source: OUTSIDE, destination: OUTSIDE },
} as const satisfies Record<string, Mode>

export const PORTER_DUFF_MODES = [
  'ADD',
  'CLEAR',
  'DARKEN',
  'DST',
  'DST_ATOP',
  'DST_IN',
  'DST_OUT',
  'DST_OVER',
  'LIGHTEN',
  'MULTIPLY',
  'OVERLAY',
  'SCREEN',
  'SRC',
  'SRC_ATOP',
  'SRC_IN',
  'SRC_OUT',
  'SRC_OVER',
  'XOR',
] as const
type PorterDuffMode = (typeof PORTER_DUFF_MODES)[number]

/** One picture each; masks tell what is transparent. */
interface Composition {
  readonly source: Float32Array
  readonly sourceMask: Float32Array
  readonly destination: Float32Array
  readonly destinationMask: Float32Array
  readonly image: Float32Array
  readonly mask: Float32Array
  readonly channels: number
}

type PixelRange = { readonly start: number; readonly end: number }

// Below this alpha there is no colour to speak of.
const LEAST_ALPHA = 1e-5

function composeSum(picture: Composition, mode: Mode, { start, end }: PixelRange): void {
  const { source, sourceMask, destination, destinationMask, image, mask, channels } = picture
  const [alphaS, alphaD, alphaBoth] = mode.alpha
  const [sourceConstant, sourceD] = mode.source
  const [destinationConstant, destinationS] = mode.destination
  const { product = 0, extreme = 'none', isClamped = false } = mode
  for (let pixel = start; pixel < end; pixel++) {
    const s = 1 - sourceMask[pixel]
    const d = 1 - destinationMask[pixel]
    const sum = alphaS * s + alphaD * d + alphaBoth * s * d
    const alpha = isClamped ? clampToUnit(sum) : sum
    mask[pixel] = 1 - alpha
    const ofSource = sourceConstant + sourceD * d
    const ofDestination = destinationConstant + destinationS * s
    for (let at = pixel * channels; at < (pixel + 1) * channels; at++) {
      const a = source[at] * s
      const b = destination[at] * d
      let colour = ofSource * a + ofDestination * b + product * a * b
      if (extreme === 'min') colour += a < b ? a : b
      else if (extreme === 'max') colour += a > b ? a : b
      else if (isClamped) colour = clampToUnit(colour)
      image[at] = alpha > LEAST_ALPHA ? clampToUnit(colour / alpha) : 0
    }
  }
}

function composeOverlay(picture: Composition, { start, end }: PixelRange): void {
  const { source, sourceMask, destination, destinationMask, image, mask, channels } = picture
  for (let pixel = start; pixel < end; pixel++) {
    const s = 1 - sourceMask[pixel]
    const d = 1 - destinationMask[pixel]
    const alpha = s + d - s * d
    mask[pixel] = 1 - alpha
    for (let at = pixel * channels; at < (pixel + 1) * channels; at++) {
      const a = source[at] * s
      const b = destination[at] * d
      // The alphas stand as upstream writes them, although each colour meets the other's.
      const colour = 2 * b < d ? 2 * a * b : s * d - 2 * (d - a) * (s - b)
      image[at] = alpha > LEAST_ALPHA ? clampToUnit(colour / alpha) : 0
    }
  }
}

/** Writes the pixels of a range. */
export function composePorterDuff(picture: Composition, mode: PorterDuffMode, range: PixelRange): void {
  if (mode === 'OVERLAY') composeOverlay(picture, range)
  else composeSum(picture, SUMS[mode], range)
}
