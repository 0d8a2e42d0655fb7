/** Second-order filters from the audio-cookbook, run sample by sample; the result is clamped to -1..1. */

import { BLOCK_ELEMENTS } from './channels.ts'
import type { PixelWork, Tensor } from './tensor.ts'

export interface Biquad {
  /** Weights of the newest three inputs and of the last two outputs, divided by the leading one. */
  readonly b: readonly [number, number, number]
  readonly a: readonly [number, number]
}

interface BandSettings {
  readonly frequency: number
  readonly sampleRate: number
  readonly gainDb: number
  readonly q: number
}

function angles({ frequency, sampleRate, gainDb, q }: BandSettings) {
  const w0 = (2 * Math.PI * frequency) / sampleRate
  return { cosine: Math.cos(w0), alpha: Math.sin(w0) / 2 / q, gain: 10 ** (gainDb / 40) }
}

function normalised(b: readonly [number, number, number], a: readonly [number, number, number]): Biquad {
  return { b: [b[0] / a[0], b[1] / a[0], b[2] / a[0]], a: [a[1] / a[0], a[2] / a[0]] }
}

export function peaking(band: BandSettings): Biquad {
  const { cosine, alpha, gain } = angles(band)
  return normalised(
    [1 + alpha * gain, -2 * cosine, 1 - alpha * gain],
    [1 + alpha / gain, -2 * cosine, 1 - alpha / gain],
  )
}

/** The two shelves mirror each other: `side` is 1 for the low one and -1 for the high one. */
function shelf(band: BandSettings, side: 1 | -1): Biquad {
  const { cosine, alpha, gain } = angles(band)
  const root = 2 * Math.sqrt(gain) * alpha
  const up = gain + 1
  const down = (gain - 1) * cosine * side
  const turned = (gain + 1) * cosine * side
  return normalised(
    [gain * (up - down + root), 2 * side * gain * (gain - 1 - turned), gain * (up - down - root)],
    [up + down + root, -2 * side * (gain - 1 + turned), up + down - root],
  )
}

export const lowShelf = (band: BandSettings) => shelf(band, 1)
export const highShelf = (band: BandSettings) => shelf(band, -1)

const CHECK_EVERY = 65_536

export function applyBiquad(waveform: Tensor, { a, b }: Biquad, { allocate, checkpoint }: PixelWork): Tensor {
  const [batch, channels, length] = waveform.shape
  const result = allocate(waveform.shape)
  const [b0, b1, b2] = b
  const [a1, a2] = a
  for (let row = 0; row < batch * channels; row++) {
    const start = row * length
    let [x1, x2, y1, y2] = [0, 0, 0, 0]
    for (let i = start; i < start + length; i++) {
      if ((i - start) % CHECK_EVERY === 0) checkpoint()
      const x = waveform.data[i]
      const y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
      x2 = x1
      x1 = x
      y2 = y1
      y1 = y
      // Only what is handed on is clamped; the filter's memory keeps the true value.
      result.data[i] = Math.min(1, Math.max(-1, y))
    }
  }
  return result
}

// Another sample rate, by windowed sinc interpolation as torchaudio's `resample` does it with its defaults: six zero
// crossings, a rolloff of 0.99, a squared cosine as window. Only taps inside the window are computed, so rates without a
// common divisor cost no more than others.

const ZERO_CROSSINGS = 6
const ROLLOFF = 0.99
// A table of this many weights is kept; a larger one would cost more than it saves.
const MAX_TABLE = 4_194_304

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

interface RatePair {
  readonly from: number
  readonly to: number
}

interface Kernel {
  /** Input samples per period, and output samples per period. */
  readonly step: number
  readonly phases: number
  readonly taps: number
  /** First input sample (relative to the period) and weights of one phase. */
  startOf(phase: number): number
  fill(phase: number, weights: Float32Array, at: number): void
}

function createKernel({ from, to }: RatePair): Kernel {
  const divisor = greatestCommonDivisor(from, to)
  const [step, phases] = [from / divisor, to / divisor]
  const cutoff = Math.min(step, phases) * ROLLOFF
  const reach = (ZERO_CROSSINGS * step) / cutoff
  const width = Math.ceil(reach)
  const taps = Math.floor(2 * reach) + 2
  const scale = cutoff / step
  const startOf = (phase: number) => Math.max(-width, Math.ceil((phase * step) / phases - reach))
  return {
    step,
    phases,
    taps,
    startOf,
    fill(phase, weights, at) {
      const start = startOf(phase)
      const last = Math.min(width + step - 1, Math.floor((phase * step) / phases + reach))
      for (let tap = 0; tap < taps; tap++) {
        const index = start + tap
        const time = (index / step - phase / phases) * cutoff
        const isInside = index <= last && Math.abs(time) < ZERO_CROSSINGS
        const window = Math.cos((time * Math.PI) / ZERO_CROSSINGS / 2) ** 2
        const angle = time * Math.PI
        weights[at + tap] = isInside ? (time === 0 ? 1 : Math.sin(angle) / angle) * window * scale : 0
      }
    },
  }
}

/** Weights of a phase as an offset into `weights`; all of them at once where they fit. */
function createWeights(kernel: Kernel): { weights: Float32Array; offsetOf: (phase: number) => number } {
  const { phases, taps, fill } = kernel
  if (phases * taps > MAX_TABLE) {
    const weights = new Float32Array(taps)
    const offsetOf = (phase: number) => {
      fill(phase, weights, 0)
      return 0
    }
    return { weights, offsetOf }
  }
  const weights = new Float32Array(phases * taps)
  for (let phase = 0; phase < phases; phase++) fill(phase, weights, phase * taps)
  return { weights, offsetOf: (phase) => phase * taps }
}

/** A waveform of [batch, channels, length] at the other rate. */
export function resample(waveform: Tensor, rates: RatePair, { allocate, checkpoint }: PixelWork): Tensor {
  if (rates.from === rates.to) return waveform
  const [batch, channels, length] = waveform.shape
  const kernel = createKernel(rates)
  const { step, phases, taps, startOf } = kernel
  const newLength = Math.ceil((phases * length) / step)
  const result = allocate([batch, channels, newLength])
  const { weights, offsetOf } = createWeights(kernel)
  const checkEvery = Math.max(1, Math.floor(BLOCK_ELEMENTS / taps))
  for (let row = 0; row < batch * channels; row++) {
    const source = waveform.data.subarray(row * length, (row + 1) * length)
    const target = result.data.subarray(row * newLength, (row + 1) * newLength)
    for (let i = 0; i < newLength; i++) {
      if (i % checkEvery === 0) checkpoint()
      const phase = i % phases
      const first = ((i - phase) / phases) * step + startOf(phase)
      const offset = offsetOf(phase)
      const begin = Math.max(0, -first)
      const end = Math.min(taps, length - first)
      let sum = 0
      for (let tap = begin; tap < end; tap++) sum += source[first + tap] * weights[offset + tap]
      target[i] = sum
    }
  }
  return result
}
