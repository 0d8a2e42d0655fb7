/** AUDIO as nodes pass it on: float samples in -1..1, [batch, channels, length], and their rate. */
import { Tensor } from '../tensor/tensor.ts'
import type { Value, ValueObject } from '../values/value.ts'

export interface Audio {
  readonly waveform: Tensor
  readonly sampleRate: number
}

export function toAudioValue({ waveform, sampleRate }: Audio): ValueObject {
  return { waveform, sample_rate: sampleRate }
}

/** null when the value is no audio. */
export function readAudioValue(value: Value): Audio | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { waveform, sample_rate: rate } = value as ValueObject
  if (!(waveform instanceof Tensor) || waveform.shape.length !== 3) return null
  if (typeof rate !== 'number' || !Number.isInteger(rate) || rate < 1) return null
  return { waveform, sampleRate: rate }
}

/** The samples of one channel; no copy. */
export function channelOf({ shape, data }: Tensor, batch: number, channel: number): Float32Array {
  const [, channels, length] = shape
  const start = (batch * channels + channel) * length
  return data.subarray(start, start + length)
}

const BLOCK_SAMPLES = 65_536

/** One element of a batch as little-endian floats, channels interleaved, in blocks: what ffmpeg calls `f32le`. */
export function* interleaved(
  waveform: Tensor,
  { batch, length, checkpoint }: { readonly batch: number; readonly length: number; checkpoint(): void },
): Generator<Uint8Array> {
  const channels = Array.from({ length: waveform.shape[1] }, (_, channel) => channelOf(waveform, batch, channel))
  for (let from = 0; from < length; from += BLOCK_SAMPLES) {
    checkpoint()
    const count = Math.min(BLOCK_SAMPLES, length - from)
    const block = new Float32Array(count * channels.length)
    channels.forEach((samples, channel) => {
      for (let i = 0, to = channel; i < count; i++, to += channels.length) block[to] = samples[from + i]
    })
    yield new Uint8Array(block.buffer)
  }
}
