/**
 * OpenEXR files of 32-bit floats: one part, lines from top to bottom, blocks of 16 lines packed with zlib. Values are written
 * as they are; what they mean is told by the chromaticities.
 */
import { deflateSync } from 'node:zlib'
import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'

interface ExrImage {
  readonly width: number
  readonly height: number
  /** 1, 3 or 4, interleaved: grey; red, green, blue; the same with alpha. */
  readonly channels: number
  readonly pixels: Float32Array
}

/** x and y of red, green, blue and white. */
type Chromaticities = readonly number[]
export const REC_709: Chromaticities = [0.64, 0.33, 0.3, 0.6, 0.15, 0.06, 0.3127, 0.329]
export const REC_2020: Chromaticities = [0.708, 0.292, 0.17, 0.797, 0.131, 0.046, 0.3127, 0.329]

interface ExrOptions {
  readonly chromaticities: Chromaticities
  readonly texts: FileTags
  checkpoint(): void
}

const MAGIC = 20_000_630
const VERSION = 2
const LONG_NAMES = 0x400
const FLOAT_TYPE = 2
const ZIP_COMPRESSION = 3
const BLOCK_LINES = 16
// As OpenEXR: higher levels cost much and gain little.
const LEVEL = 4
const SHORT_NAME = 31
const LONG_NAME = 255

// Channels are stored in the order of their names; `index` is where a channel stands in a pixel.
const COLORS = [
  { name: 'B', index: 2 },
  { name: 'G', index: 1 },
  { name: 'R', index: 0 },
]
const LAYOUTS: Readonly<Record<number, readonly { readonly name: string; readonly index: number }[]>> = {
  1: [{ name: 'Y', index: 0 }],
  3: COLORS,
  4: [{ name: 'A', index: 3 }, ...COLORS],
}

const text = (value: string) => Buffer.from(`${value}\0`, 'latin1')

const int32 = (...values: number[]) => Buffer.from(Int32Array.from(values).buffer)
const float32 = (...values: number[]) => Buffer.from(Float32Array.from(values).buffer)

function attribute(name: string, type: string, body: Buffer): Buffer {
  return Buffer.concat([text(name), text(type), int32(body.length), body])
}

function channelList(channels: number): Buffer {
  const entries = LAYOUTS[channels].map(({ name }) => Buffer.concat([text(name), int32(FLOAT_TYPE, 0, 1, 1)]))
  return Buffer.concat([...entries, Buffer.alloc(1)])
}

const RESERVED: ReadonlySet<string> = new Set([
  'channels',
  'compression',
  'dataWindow',
  'displayWindow',
  'lineOrder',
  'pixelAspectRatio',
  'screenWindowCenter',
  'screenWindowWidth',
  'chromaticities',
])

function checkNames(texts: FileTags): void {
  for (const [name] of texts) {
    if (name !== '' && name.length <= LONG_NAME && /^[\x20-\x7e]+$/.test(name) && !RESERVED.has(name)) continue
    throw new NodeError(
      'ValueError',
      `a key of extra_pnginfo cannot be written into an EXR: use 1 to ${LONG_NAME} ASCII characters`,
    )
  }
}

function header({ width, height, channels }: ExrImage, { chromaticities, texts }: ExrOptions): Buffer {
  checkNames(texts)
  const isLong = texts.some(([name]) => name.length > SHORT_NAME)
  const window = int32(0, 0, width - 1, height - 1)
  return Buffer.concat([
    int32(MAGIC, VERSION | (isLong ? LONG_NAMES : 0)),
    attribute('channels', 'chlist', channelList(channels)),
    attribute('compression', 'compression', Buffer.from([ZIP_COMPRESSION])),
    attribute('dataWindow', 'box2i', window),
    attribute('displayWindow', 'box2i', window),
    attribute('lineOrder', 'lineOrder', Buffer.alloc(1)),
    attribute('pixelAspectRatio', 'float', float32(1)),
    attribute('screenWindowCenter', 'v2f', float32(0, 0)),
    attribute('screenWindowWidth', 'float', float32(1)),
    attribute('chromaticities', 'chromaticities', float32(...chromaticities)),
    ...texts.map(([name, value]) => attribute(name, 'string', Buffer.from(value, 'utf8'))),
    Buffer.alloc(1),
  ])
}

/** Lines of a block, channel after channel within each line. EXR has the order of bytes that our machines have. */
function blockBytes({ width, height, channels, pixels }: ExrImage, from: number): Uint8Array {
  const lines = Math.min(BLOCK_LINES, height - from)
  const floats = new Float32Array(lines * width * channels)
  let at = 0
  for (let y = from; y < from + lines; y++) {
    for (const { index } of LAYOUTS[channels]) {
      const end = (y + 1) * width * channels
      for (let i = y * width * channels + index; i < end; i += channels) floats[at++] = pixels[i]
    }
  }
  return new Uint8Array(floats.buffer)
}

/** Even bytes first, then odd ones, each as its difference to the one before: what zlib packs well. */
function prepare(raw: Uint8Array): Uint8Array {
  const half = (raw.length + 1) >> 1
  const ordered = new Uint8Array(raw.length)
  for (let i = 0, to = 0; i < raw.length; i += 2) ordered[to++] = raw[i]
  for (let i = 1, to = half; i < raw.length; i += 2) ordered[to++] = raw[i]
  for (let i = raw.length - 1; i > 0; i--) ordered[i] = ordered[i] - ordered[i - 1] + 128
  return ordered
}

function block(image: ExrImage, from: number): Buffer {
  const raw = blockBytes(image, from)
  const packed = deflateSync(prepare(raw), { level: LEVEL })
  const body = packed.length < raw.length ? packed : raw
  return Buffer.concat([int32(from, body.length), body])
}

export function encodeExr(image: ExrImage, options: ExrOptions): Uint8Array<ArrayBuffer> {
  const head = header(image, options)
  const blocks: Buffer[] = []
  for (let from = 0; from < image.height; from += BLOCK_LINES) {
    options.checkpoint()
    blocks.push(block(image, from))
  }
  const table = Buffer.alloc(blocks.length * 8)
  let offset = head.length + table.length
  blocks.forEach((bytes, index) => {
    table.writeBigUInt64LE(BigInt(offset), index * 8)
    offset += bytes.length
  })
  const whole = new Uint8Array(offset)
  let at = 0
  for (const part of [head, table, ...blocks]) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export const LIGHT_SPACES = ['sRGB', 'HDR', 'linear'] as const
export type LightSpace = (typeof LIGHT_SPACES)[number]

const TO_LINEAR: Readonly<Record<LightSpace, (value: number) => number>> = {
  sRGB: (x) => (x <= 0.040_45 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4),
  // Hybrid log-gamma.
  HDR: (x) => (x <= 0.5 ? (x * x) / 3 : (Math.exp((x - 0.559_910_729_28) / 0.178_832_77) + 0.284_668_92) / 12),
  linear: (x) => x,
}

const ALPHA = 3
const CHECK_EVERY = 65_536

/** Display values as a copy in linear light. Nothing is clamped; alpha is no light and stays. */
export function toLinearLight(
  pixels: Float32Array,
  { channels, space, checkpoint }: { readonly channels: number; readonly space: LightSpace; checkpoint(): void },
): Float32Array {
  const linear = new Float32Array(pixels.length)
  const convert = TO_LINEAR[space]
  for (let i = 0; i < pixels.length; i++) {
    if (i % CHECK_EVERY === 0) checkpoint()
    linear[i] = i % channels === ALPHA ? pixels[i] : convert(pixels[i])
  }
  return linear
}
