/** AUDIO as nodes pass it on: float samples in -1..1, [batch, channels, length], and their rate. */

import { type FileHandle, open } from 'node:fs/promises'
import { type Allocate, Tensor } from '../tensor/tensor.ts'
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

// WAV files as samples, without help: integers of 8 to 32 bits and floats of 32 and 64. Other encodings inside a WAV, and
// other containers, are left to ffmpeg. Sizes in the headers are promises: what counts is what the file holds.

interface WavFormat {
  readonly encoding: Encoding
  readonly channels: number
  readonly sampleRate: number
  readonly bytesPerSample: number
}

type Encoding = keyof typeof READ_SAMPLE

// Every integer kind is scaled by its full range, so that -1 is the lowest value.
const READ_SAMPLE = {
  pcm8: (view: DataView, at: number) => (view.getUint8(at) - 128) / 128,
  pcm16: (view: DataView, at: number) => view.getInt16(at, true) / 32_768,
  pcm24: (view: DataView, at: number) => (view.getUint16(at, true) + view.getInt8(at + 2) * 65_536) / 8_388_608,
  pcm32: (view: DataView, at: number) => view.getInt32(at, true) / 2_147_483_648,
  float32: (view: DataView, at: number) => view.getFloat32(at, true),
  float64: (view: DataView, at: number) => view.getFloat64(at, true),
} as const

const ENCODINGS: Readonly<Record<string, Encoding>> = {
  '1/8': 'pcm8',
  '1/16': 'pcm16',
  '1/24': 'pcm24',
  '1/32': 'pcm32',
  '3/32': 'float32',
  '3/64': 'float64',
}

const EXTENSIBLE = 0xfffe
const EXTENSIBLE_BYTES = 26
const MAX_CHANNELS = 64
const MAX_CHUNKS = 1000

/** null for encodings that are not read here. */
function readFormat(chunk: Buffer): WavFormat | null {
  if (chunk.length < 16) return null
  const tag = chunk.readUInt16LE(0)
  const channels = chunk.readUInt16LE(2)
  const sampleRate = chunk.readUInt32LE(4)
  const bits = chunk.readUInt16LE(14)
  // The extensible form keeps the real tag at the start of an identifier.
  const kind = tag === EXTENSIBLE && chunk.length >= EXTENSIBLE_BYTES ? chunk.readUInt16LE(24) : tag
  const encoding = ENCODINGS[`${kind}/${bits}`]
  if (encoding === undefined || channels < 1 || channels > MAX_CHANNELS || sampleRate < 1) return null
  const bytesPerSample = bits / 8
  if (chunk.readUInt16LE(12) !== bytesPerSample * channels) return null
  return { encoding, channels, sampleRate, bytesPerSample }
}

interface WavPlan {
  readonly format: WavFormat
  readonly dataStart: number
  readonly frames: number
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await file.read(bytes, 0, length, position)
  return bytes.subarray(0, bytesRead)
}

/** Walks the chunks up to the samples. null when this is no WAV that is read here. */
async function plan(file: FileHandle): Promise<WavPlan | null> {
  const { size } = await file.stat()
  const head = await readAt(file, 0, 12)
  if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, 12) !== 'WAVE') return null
  let format: WavFormat | null = null
  for (let at = 12, chunks = 0; at + 8 <= size && chunks < MAX_CHUNKS; chunks++) {
    const header = await readAt(file, at, 8)
    const id = header.toString('latin1', 0, 4)
    const length = header.readUInt32LE(4)
    if (id === 'fmt ') format = readFormat(await readAt(file, at + 8, Math.min(length, 64)))
    if (id === 'data') {
      if (format === null) return null
      // Writers that could not go back leave 0 or all ones: then the samples go on to the end.
      const wanted = length === 0 || length === 0xffff_ffff ? size : length
      const available = Math.min(wanted, size - at - 8)
      const frames = Math.floor(available / (format.bytesPerSample * format.channels))
      return { format, dataStart: at + 8, frames }
    }
    at += 8 + length + (length % 2)
  }
  return null
}

const BLOCK_FRAMES = 65_536

interface WavWork {
  readonly allocate: Allocate
  checkpoint(): void
}

/** null when the file has to be read by other means. */
export async function readWav(path: string, { allocate, checkpoint }: WavWork): Promise<Audio | null> {
  await using file = await open(path)
  const planned = await plan(file)
  if (planned === null) return null
  const { format, dataStart, frames } = planned
  const { channels, bytesPerSample, sampleRate } = format
  const waveform = allocate([1, channels, frames])
  const readSample = READ_SAMPLE[format.encoding]
  const frameBytes = bytesPerSample * channels
  for (let from = 0; from < frames; from += BLOCK_FRAMES) {
    checkpoint()
    const count = Math.min(BLOCK_FRAMES, frames - from)
    const block = await readAt(file, dataStart + from * frameBytes, count * frameBytes)
    const view = new DataView(block.buffer, block.byteOffset, block.length)
    const held = Math.floor(block.length / frameBytes)
    for (let channel = 0; channel < channels; channel++) {
      const to = channel * frames + from
      for (let i = 0, at = channel * bytesPerSample; i < held; i++, at += frameBytes) {
        waveform.data[to + i] = readSample(view, at)
      }
      // A file that shrank meanwhile ends in silence, not in whatever the memory held.
      waveform.data.fill(0, to + held, to + count)
    }
  }
  return { waveform, sampleRate }
}
