/**
 * FLAC files of 16 bit with comments, without help from outside. Lossless for what 16 bit can hold; files come out a few
 * percent larger than those of the reference encoder, which searches longer.
 */
import { createHash } from 'node:crypto'
import type { FileTags } from '../../files/file-tags.ts'
import { NodeError } from '../../node/node-error.ts'
import { type Audio, channelOf } from '../audio.ts'
import { BitWriter } from './bit-writer.ts'
import { BLOCK_SIZE, SAMPLE_BITS, writeFrame } from './frame.ts'

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
