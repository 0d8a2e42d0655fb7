/**
 * Another sample rate, by windowed sinc interpolation as torchaudio's `resample` does it with its defaults: six zero
 * crossings, a rolloff of 0.99, a squared cosine as window. Only taps inside the window are computed, so rates without a
 * common divisor cost no more than others.
 */
import { BLOCK_ELEMENTS } from '../map-pixels.ts'
import type { PixelWork, Tensor } from '../tensor.ts'

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
