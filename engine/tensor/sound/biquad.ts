/** Second-order filters from the audio-cookbook, run sample by sample; the result is clamped to -1..1. */
import type { PixelWork, Tensor } from '../tensor.ts'

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
