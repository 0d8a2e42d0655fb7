/** What tests of media nodes share: whether ffmpeg is there, files of any kind of sound, and tensors without an engine. */
import { spawnSync } from 'node:child_process'
import { type PixelWork, Tensor } from '../../tensor/tensor.ts'

const isThere = (program: string) => spawnSync(program, ['-version']).status === 0

/** For `skip`: false, or the reason. */
export const withoutFfmpeg: false | string =
  isThere('ffmpeg') && isThere('ffprobe') ? false : 'ffmpeg and ffprobe are not installed'

export const plainWork: PixelWork = {
  allocate(shape) {
    const count = shape.reduce((product, side) => product * side, 1)
    // Memory that is used again is never empty.
    return new Tensor([...shape], new Float32Array(new SharedArrayBuffer(count * 4)).fill(Number.NaN))
  },
  checkpoint() {},
}

/** A waveform of one element, a function of sample and channel. */
export function waveformOf(channels: number, length: number, sample: (i: number, channel: number) => number): Tensor {
  const waveform = plainWork.allocate([1, channels, length])
  for (let i = 0; i < channels * length; i++) waveform.data[i] = sample(i % length, Math.floor(i / length))
  return waveform
}

export interface WavOptions {
  readonly tag: number
  readonly bits: number
  readonly channels: number
  readonly rate: number
  /** Instead of the true number of bytes. */
  readonly claimedBytes?: number
  /** Chunks before the samples. */
  readonly extra?: Buffer
}

/** A WAV file around the given samples. */
export function wavFile(data: Buffer, { tag, bits, channels, rate, claimedBytes, extra }: WavOptions): Buffer {
  const format = Buffer.alloc(24)
  format.write('fmt ', 'latin1')
  format.writeUInt32LE(16, 4)
  format.writeUInt16LE(tag, 8)
  format.writeUInt16LE(channels, 10)
  format.writeUInt32LE(rate, 12)
  format.writeUInt32LE((rate * channels * bits) / 8, 16)
  format.writeUInt16LE((channels * bits) / 8, 20)
  format.writeUInt16LE(bits, 22)
  const head = Buffer.alloc(8)
  head.write('data', 'latin1')
  head.writeUInt32LE(claimedBytes ?? data.length, 4)
  const body = Buffer.concat([Buffer.from('WAVE'), format, extra ?? Buffer.alloc(0), head, data])
  const riff = Buffer.alloc(8)
  riff.write('RIFF', 'latin1')
  riff.writeUInt32LE(body.length, 4)
  return Buffer.concat([riff, body])
}
