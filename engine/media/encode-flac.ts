/**
 * FLAC files of 16 bit with comments, without help from outside. Lossless for what 16 bit can hold; files come out a few
 * percent larger than those of the reference encoder, which searches longer.
 */

import { createHash } from 'node:crypto'
import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'
import { type Audio, channelOf } from './audio.ts'
import { BitWriter, type Plan, planSubframe, writeSubframe } from './flac-subframe.ts'

// One block of all channels as a FLAC frame. Two channels are stored as they are, or as one of them and the difference.

const SAMPLE_BITS = 16
const BLOCK_SIZE = 4096

interface Layout {
  /** The field of the header that names it. */
  readonly code: number
  readonly channels: readonly { readonly samples: Int32Array; readonly plan: Plan; readonly sampleBits: number }[]
}

function planned(samples: Int32Array, sampleBits = SAMPLE_BITS) {
  return { samples, plan: planSubframe(samples, sampleBits), sampleBits }
}

const bitsOf = ({ channels }: Layout) => channels.reduce((sum, { plan }) => sum + plan.bits, 0)

function stereoLayouts(left: Int32Array, right: Int32Array): Layout[] {
  const [first, second] = [planned(left), planned(right)]
  // A difference may need one bit more than what it is made of.
  const side = planned(
    left.map((sample, i) => sample - right[i]),
    SAMPLE_BITS + 1,
  )
  const middle = planned(left.map((sample, i) => (sample + right[i]) >> 1))
  return [
    { code: 1, channels: [first, second] },
    { code: 8, channels: [first, side] },
    { code: 9, channels: [side, second] },
    { code: 10, channels: [middle, side] },
  ]
}

function chooseLayout(channels: readonly Int32Array[]): Layout {
  if (channels.length !== 2) return { code: channels.length - 1, channels: channels.map((part) => planned(part)) }
  return stereoLayouts(channels[0], channels[1]).reduce((best, next) => (bitsOf(next) < bitsOf(best) ? next : best))
}

/** The number of the frame, in the form that UTF-8 gave to character codes. */
function writeNumber(out: BitWriter, number: number): void {
  if (number < 0x80) {
    out.write(number, 8)
    return
  }
  const bits = 32 - Math.clz32(number)
  // n bytes hold 5n + 1 bits.
  const more = Math.ceil((bits - 1) / 5) - 1
  out.write((0xff00 >> (more + 1)) | (number >>> (6 * more)), 8)
  for (let left = more - 1; left >= 0; left--) out.write(0x80 | ((number >>> (6 * left)) & 0x3f), 8)
}

const COMMON_RATES: readonly number[] = [
  0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
]
const RATE_IN_HERTZ_CODE = 0b1101
const RATE_IN_TENS_CODE = 0b1110

/** Every frame names the rate, so that a reader may start anywhere; 0 refers to the header of the stream. */
function rateField(sampleRate: number): { code: number; value: number | null } {
  const code = COMMON_RATES.indexOf(sampleRate)
  if (code > 0) return { code, value: null }
  if (sampleRate < 65_536) return { code: RATE_IN_HERTZ_CODE, value: sampleRate }
  const tens = sampleRate / 10
  if (Number.isInteger(tens) && tens < 65_536) return { code: RATE_IN_TENS_CODE, value: tens }
  return { code: 0, value: null }
}

const FULL_BLOCK_CODE = 0b1100
const SHORT_BLOCK_CODE = 0b0111
const SAMPLE_BITS_CODE = 0b100

interface FrameFacts {
  readonly number: number
  readonly sampleRate: number
}

/** The frame's bytes; valid until the writer is used again. */
function writeFrame(out: BitWriter, channels: readonly Int32Array[], { number, sampleRate }: FrameFacts): Uint8Array {
  const layout = chooseLayout(channels)
  const size = channels[0].length
  const rate = rateField(sampleRate)
  out.reset()
  out.write(0xfff8, 16)
  out.write(size === BLOCK_SIZE ? FULL_BLOCK_CODE : SHORT_BLOCK_CODE, 4)
  out.write(rate.code, 4)
  out.write(layout.code, 4)
  out.write(SAMPLE_BITS_CODE << 1, 4)
  writeNumber(out, number)
  if (size !== BLOCK_SIZE) out.write(size - 1, 16)
  if (rate.value !== null) out.write(rate.value, 16)
  out.write(crc8(out.bytes()), 8)
  for (const { samples, plan, sampleBits } of layout.channels) writeSubframe(out, samples, plan, sampleBits)
  out.align()
  out.write(crc16(out.bytes()), 16)
  return out.bytes()
}

/** A frame has two checksums: one byte over its header, two over all of it. */
function tableOf(polynomial: number, bits: 8 | 16): Uint16Array {
  const top = 1 << (bits - 1)
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let value = byte << (bits - 8)
    for (let bit = 0; bit < 8; bit++) value = value & top ? (value << 1) ^ polynomial : value << 1
    return value & (2 ** bits - 1)
  })
}

const CRC8 = tableOf(0x07, 8)
const CRC16 = tableOf(0x8005, 16)

function crc8(bytes: Uint8Array): number {
  let value = 0
  for (const byte of bytes) value = CRC8[value ^ byte]
  return value
}

function crc16(bytes: Uint8Array): number {
  let value = 0
  for (const byte of bytes) value = ((value << 8) & 0xffff) ^ CRC16[(value >> 8) ^ byte]
  return value
}

const MAX_RATE = 1_048_575
const MAX_CHANNELS = 8
const MAX_BLOCK_BYTES = 0xff_ffff
const FIELD_NAME = /^[\x20-\x3c\x3e-\x7d]+$/

function metadataBlock(type: number, isLast: boolean, body: Buffer): Buffer {
  if (body.length > MAX_BLOCK_BYTES) {
    throw new NodeError('ValueError', 'the workflow is too large for the comments of a FLAC file (16 MiB)')
  }
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  head[0] = type | (isLast ? 0x80 : 0)
  return Buffer.concat([head, body])
}

interface StreamFacts {
  readonly sampleRate: number
  readonly channels: number
  readonly length: number
  readonly digest: Buffer
}

function streamInfo({ sampleRate, channels, length, digest }: StreamFacts): Buffer {
  const body = Buffer.alloc(18)
  body.writeUInt16BE(BLOCK_SIZE, 0)
  body.writeUInt16BE(BLOCK_SIZE, 2)
  // Bytes 4 to 9, the smallest and largest frame, stay 0: unknown.
  const facts =
    (BigInt(sampleRate) << 44n) | (BigInt(channels - 1) << 41n) | (BigInt(SAMPLE_BITS - 1) << 36n) | BigInt(length)
  body.writeBigUInt64BE(facts, 10)
  return Buffer.concat([body, digest])
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return Buffer.concat([length, bytes])
}

function comments(tags: FileTags): Buffer {
  for (const [key] of tags) {
    if (FIELD_NAME.test(key)) continue
    throw new NodeError(
      'ValueError',
      'a key of extra_pnginfo cannot be written into a FLAC file: use ASCII without "="',
    )
  }
  const count = Buffer.alloc(4)
  count.writeUInt32LE(tags.length)
  return Buffer.concat([counted('Atelier'), count, ...tags.map(([key, value]) => counted(`${key}=${value}`))])
}

/** Rounds halves to even and clips, as the conversion in ffmpeg does. */
function toInteger(sample: number): number {
  const scaled = sample * 32_768
  if (!(scaled > -32_768)) return Number.isNaN(scaled) ? 0 : -32_768
  if (scaled >= 32_767) return 32_767
  const rounded = Math.round(scaled)
  return rounded - scaled === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded
}

function toBlock(samples: Float32Array, from: number): Int32Array {
  const part = samples.subarray(from, from + BLOCK_SIZE)
  const block = new Int32Array(part.length)
  for (let i = 0; i < part.length; i++) block[i] = toInteger(part[i])
  return block
}

/** The digest is taken of the samples as a 16-bit file would hold them. */
function interleave(blocks: readonly Int32Array[]): Buffer {
  const bytes = Buffer.alloc(blocks[0].length * blocks.length * 2)
  blocks.forEach((block, channel) => {
    for (let i = 0; i < block.length; i++) bytes.writeInt16LE(block[i], (i * blocks.length + channel) * 2)
  })
  return bytes
}

function checkLimits(channels: number, sampleRate: number): void {
  if (channels >= 1 && channels <= MAX_CHANNELS && sampleRate <= MAX_RATE) return
  const message = `FLAC holds 1 to ${MAX_CHANNELS} channels of at most ${MAX_RATE} Hz, not ${channels} of ${sampleRate} Hz`
  throw new NodeError('ValueError', message)
}

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

interface FlacOptions {
  /** Which element of the batch. */
  readonly batch: number
  readonly tags: FileTags
  checkpoint(): void
}

export function encodeFlac({ waveform, sampleRate }: Audio, { batch, tags, checkpoint }: FlacOptions) {
  const [, channels, length] = waveform.shape
  checkLimits(channels, sampleRate)
  const sources = Array.from({ length: channels }, (_, channel) => channelOf(waveform, batch, channel))
  const out = new BitWriter()
  const md5 = createHash('md5')
  const frames: Uint8Array[] = []
  for (let from = 0; from < length; from += BLOCK_SIZE) {
    checkpoint()
    const blocks = sources.map((samples) => toBlock(samples, from))
    md5.update(interleave(blocks))
    frames.push(writeFrame(out, blocks, { number: from / BLOCK_SIZE, sampleRate }).slice())
  }
  const info = streamInfo({ sampleRate, channels, length, digest: md5.digest() })
  const head = [Buffer.from('fLaC'), metadataBlock(0, false, info), metadataBlock(4, true, comments(tags))]
  return join([...head, ...frames])
}
