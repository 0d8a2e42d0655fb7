/**
 * A batch of images as one WebP, moving where there are several. Frames are encoded as still pictures of what changed, several at a
 * time on all cores. The library's own encoder of animations takes one frame after the other, and converts a lossy frame to half the
 * colour resolution, back, and to half again, which shows.
 */
import { availableParallelism } from 'node:os'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import { createSemaphore } from '../../lib/waiting/semaphore.ts'
import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'
import { toBytes } from '../tensor/bytes.ts'
import { inBlocks } from '../tensor/channels.ts'
import type { ImageView } from '../tensor/tensor.ts'
import { changedPart, cutChanges, cutPart, type Part } from './encode-png.ts'

/** The chunks of a WebP file. */

interface RiffChunk {
  readonly id: string
  readonly body: Uint8Array
}

const FORM_BYTES = 12
const CHUNK_HEAD_BYTES = 8

/** What the extended header says of the file, together with the size of the picture. */
const WEBP_FLAGS = { animation: 0x02, exif: 0x08, alpha: 0x10 } as const

function extendedHeader(size: { readonly width: number; readonly height: number }, flags: number): RiffChunk {
  const body = Buffer.alloc(10)
  body[0] = flags
  body.writeUIntLE(size.width - 1, 4, 3)
  body.writeUIntLE(size.height - 1, 7, 3)
  return { id: 'VP8X', body }
}

const paddedBytes = ({ body }: RiffChunk) => CHUNK_HEAD_BYTES + body.length + (body.length % 2)

export function readRiff(webp: Uint8Array): RiffChunk[] {
  const bytes = Buffer.from(webp.buffer, webp.byteOffset, webp.byteLength)
  const chunks: RiffChunk[] = []
  for (let at = FORM_BYTES; at + CHUNK_HEAD_BYTES <= bytes.length; ) {
    const start = at + CHUNK_HEAD_BYTES
    const chunk = {
      id: bytes.toString('latin1', at, at + 4),
      body: bytes.subarray(start, start + bytes.readUInt32LE(at + 4)),
    }
    chunks.push(chunk)
    at += paddedBytes(chunk)
  }
  return chunks
}

/** The chunks one after the other, each padded to an even length. */
function joinChunks(chunks: readonly RiffChunk[]): Uint8Array<ArrayBuffer> {
  return writeInto(0, chunks)
}

function writeRiff(chunks: readonly RiffChunk[]): Uint8Array<ArrayBuffer> {
  const result = writeInto(FORM_BYTES, chunks)
  const form = Buffer.from(result.buffer)
  form.write('RIFF', 0, 'latin1')
  form.writeUInt32LE(result.length - CHUNK_HEAD_BYTES, 4)
  form.write('WEBP', 8, 'latin1')
  return result
}

function writeInto(first: number, chunks: readonly RiffChunk[]): Uint8Array<ArrayBuffer> {
  const total = chunks.reduce((sum, chunk) => sum + paddedBytes(chunk), first)
  const result = Buffer.from(new ArrayBuffer(total))
  let at = first
  for (const chunk of chunks) {
    result.write(chunk.id, at, 'latin1')
    result.writeUInt32LE(chunk.body.length, at + 4)
    result.set(chunk.body, at + CHUNK_HEAD_BYTES)
    at += paddedBytes(chunk)
  }
  return new Uint8Array(result.buffer)
}

// An animated WebP put together from still ones, each with what changed since the frame before it; it loops forever.

interface WebpFrame {
  /** A WebP file as large as the part. */
  readonly still: Uint8Array
  /** Where it goes; left and top are even. */
  readonly part: Part
  readonly ms: number
  /** Its transparent pixels leave what is below them; otherwise the whole part is replaced. */
  readonly isBlended: boolean
}

interface WebpCanvas {
  readonly width: number
  readonly height: number
  readonly hasAlpha: boolean
}

const MAX_FRAME_MS = 0xff_ff_ff

const NO_BLENDING = 0x02
const FRAME_HEAD_BYTES = 16
/** The chunks of a still that hold its pixels. */
const PIXELS = ['ALPH', 'VP8 ', 'VP8L']

function assembleWebp(frames: readonly WebpFrame[], canvas: WebpCanvas): Uint8Array {
  // A single frame is a still picture.
  if (frames.length === 1) return frames[0].still
  const flags = WEBP_FLAGS.animation | (canvas.hasAlpha ? WEBP_FLAGS.alpha : 0)
  const loopsForever = new Uint8Array(6)
  return writeRiff([extendedHeader(canvas, flags), { id: 'ANIM', body: loopsForever }, ...frames.map(frameChunk)])
}

function frameChunk({ still, part, ms, isBlended }: WebpFrame): RiffChunk {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  head.writeUIntLE(part.left / 2, 0, 3)
  head.writeUIntLE(part.top / 2, 3, 3)
  head.writeUIntLE(part.width - 1, 6, 3)
  head.writeUIntLE(part.height - 1, 9, 3)
  head.writeUIntLE(ms, 12, 3)
  head[15] = isBlended ? 0 : NO_BLENDING
  const pixels = joinChunks(readRiff(still).filter(({ id }) => PIXELS.includes(id)))
  return { id: 'ANMF', body: Buffer.concat([head, pixels]) }
}

export interface WebpSettings {
  readonly lossless: boolean
  readonly quality: number
  readonly effort: number
  /** How long every image of the batch is shown. */
  readonly frameMs: number
}

/** A frame before it is encoded. */
interface Shot {
  /** Which image of the batch. */
  readonly index: number
  readonly part: Part
  ms: number
}

export async function encodeWebp(view: ImageView, settings: WebpSettings, checkpoint: () => void): Promise<Uint8Array> {
  const pixels = new Uint8Array(view.data.length)
  inBlocks(pixels.length, checkpoint, (from, to) => toBytes(view.data, pixels, { from, to: from, count: to - from }))
  const images = cutImages(pixels, view)
  const shots = planShots(images, view, { frameMs: settings.frameMs, checkpoint })
  const atOnce = createSemaphore(availableParallelism())
  const encoding = await Promise.allSettled(
    shots.map((shot) =>
      atOnce.run(async () => {
        checkpoint()
        return encodeShot(shot, images, view, settings)
      }),
    ),
  )
  checkpoint()
  const frames = encoding.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  })
  const hasAlpha = view.channels === 4 || frames.some(({ isBlended }) => isBlended)
  return assembleWebp(frames, { width: view.width, height: view.height, hasAlpha })
}

function cutImages(pixels: Uint8Array, { batch, width, height, channels }: ImageView): Uint8Array[] {
  const length = width * height * channels
  return Array.from({ length: batch }, (_, index) => pixels.subarray(index * length, (index + 1) * length))
}

/** An image that equals the one before it is no frame of its own: that one is shown for longer. */
function planShots(
  images: readonly Uint8Array[],
  view: ImageView,
  { frameMs, checkpoint }: { readonly frameMs: number; checkpoint(): void },
): Shot[] {
  const shots: Shot[] = [{ index: 0, part: { left: 0, top: 0, width: view.width, height: view.height }, ms: frameMs }]
  for (let index = 1; index < images.length; index++) {
    checkpoint()
    const part = changedPart(images[index - 1], images[index], view)
    const latest = shots[shots.length - 1]
    if (part === null && latest.ms + frameMs <= MAX_FRAME_MS) latest.ms += frameMs
    else shots.push({ index, part: part ?? { left: 0, top: 0, width: 1, height: 1 }, ms: frameMs })
  }
  return shots
}

async function encodeShot(
  { index, part, ms }: Shot,
  images: readonly Uint8Array[],
  view: ImageView,
  { lossless, quality, effort }: WebpSettings,
): Promise<WebpFrame> {
  // Where pixels are kept exactly, those that did not change compress best when they are left out.
  const changes =
    lossless && index > 0 && view.channels === 3 ? cutChanges(images[index - 1], images[index], part, view) : null
  const channels = changes === null ? (view.channels as 3 | 4) : 4
  const raw = { width: part.width, height: part.height, channels }
  const still = await loadSharp()(changes ?? cutPart(images[index], part, view), { raw, limitInputPixels: false })
    .webp({ lossless, quality, effort })
    .toBuffer()
  return { still, part, ms, isBlended: changes !== null }
}

// What a WebP file remembers: an EXIF block in which every text is a tag of its own, from 0x0110 downwards. A file of the
// simple kind gets the extended header that such a block needs.

const FIRST_TAG = 0x0110
const ASCII_TYPE = 2
const ENTRY_BYTES = 12
const TIFF_HEAD_BYTES = 8

/** A TIFF directory of texts, in the order of their tags. */
function toExif(texts: FileTags): Buffer {
  if (texts.length > FIRST_TAG) throw new NodeError('ValueError', 'extra_pnginfo has too many keys for a WebP file')
  const tags = texts
    .map(([key, value], index) => ({ tag: FIRST_TAG - index, bytes: Buffer.from(`${key}:${value}\0`, 'utf8') }))
    .toReversed()
  const directory = Buffer.alloc(TIFF_HEAD_BYTES + 2 + tags.length * ENTRY_BYTES + 4)
  directory.write('II*\0', 'latin1')
  directory.writeUInt32LE(TIFF_HEAD_BYTES, 4)
  directory.writeUInt16LE(tags.length, TIFF_HEAD_BYTES)
  let offset = directory.length
  tags.forEach(({ tag, bytes }, index) => {
    const at = TIFF_HEAD_BYTES + 2 + index * ENTRY_BYTES
    directory.writeUInt16LE(tag, at)
    directory.writeUInt16LE(ASCII_TYPE, at + 2)
    directory.writeUInt32LE(bytes.length, at + 4)
    // A text of up to four bytes stands in its own entry.
    if (bytes.length <= 4) bytes.copy(directory, at + 8)
    else {
      directory.writeUInt32LE(offset, at + 8)
      offset += bytes.length
    }
  })
  return Buffer.concat([directory, ...tags.filter(({ bytes }) => bytes.length > 4).map(({ bytes }) => bytes)])
}

interface WebpFacts {
  readonly width: number
  readonly height: number
  readonly hasAlpha: boolean
}

export function insertWebpExif(webp: Uint8Array, texts: FileTags, facts: WebpFacts): Uint8Array<ArrayBuffer> {
  const chunks = readRiff(webp).filter(({ id }) => id !== 'EXIF')
  const [head, ...rest] =
    chunks[0].id === 'VP8X' ? chunks : [extendedHeader(facts, facts.hasAlpha ? WEBP_FLAGS.alpha : 0), ...chunks]
  const flagged = Buffer.from(head.body)
  flagged[0] |= WEBP_FLAGS.exif
  return writeRiff([{ id: 'VP8X', body: flagged }, ...rest, { id: 'EXIF', body: toExif(texts) }])
}
