/**
 * Image files as tensors. sharp decodes, with a bound on pixels that counts every frame, and with its memory reserved from what
 * the header says before the first pixel is read. What comes out is RGB or RGBA in 8 or 16 bit, rotated upright. Anything that
 * is not a whole image of a known format is a node error that names the fault and never a path.
 */
import { open } from 'node:fs/promises'
import type { Metadata } from 'sharp'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import type { InputFile } from '../node/node-context.ts'
import { NodeError } from '../node/node-error.ts'
import { BYTE_TO_FLOAT } from '../tensor/bytes.ts'
import { inBlocks } from '../tensor/channels.ts'
import type { DecodeWork, PixelWork, Tensor } from '../tensor/tensor.ts'

interface DecodeOptions {
  /** As the graph names the file, for messages. */
  readonly name: string
  readonly maxPixels: number
}

/** Pixels of all frames, interleaved; `scale` is the value that means 1. */
export interface DecodedImage {
  readonly frames: number
  readonly height: number
  readonly width: number
  readonly channels: 3 | 4
  readonly pixels: Uint8Array | Uint16Array
  readonly scale: 255 | 65535
}

// Raster formats that are read as data. SVG is a program for a renderer and stays out.
const READABLE: ReadonlySet<string | undefined> = new Set(['jpeg', 'png', 'webp', 'gif', 'tiff', 'heif'])

// A file that begins like one of these is a damaged image; any other is none at all.
const SIGNATURES: readonly Buffer[] = [
  Buffer.from([0x89, 0x50, 0x4e, 0x47]),
  Buffer.from([0xff, 0xd8, 0xff]),
  Buffer.from('GIF8'),
  Buffer.from('RIFF'),
  Buffer.from('II*\0', 'latin1'),
  Buffer.from('MM\0*', 'latin1'),
]

function unidentified(name: string): NodeError {
  return new NodeError('PIL.UnidentifiedImageError', `cannot identify image file '${name}'`)
}

function tooLarge(pixels: number, limit: number): NodeError {
  const message = `Image size (${pixels} pixels) exceeds limit of ${limit} pixels, could be decompression bomb DOS attack.`
  return new NodeError('PIL.Image.DecompressionBombError', message)
}

async function looksLikeImage(path: string): Promise<boolean> {
  await using file = await open(path)
  const head = Buffer.alloc(4)
  await file.read(head, 0, head.length, 0)
  return SIGNATURES.some((signature) => head.subarray(0, signature.length).equals(signature))
}

/** sharp's messages may quote paths and libraries; ours say what it means for the caller. */
async function toNodeError(error: unknown, { path }: InputFile, { name }: DecodeOptions): Promise<NodeError> {
  if (error instanceof NodeError) return error
  const text = error instanceof Error ? error.message : String(error)
  if (text.includes('missing')) return new NodeError('FileNotFoundError', `the file '${name}' is not there any more`)
  if (await looksLikeImage(path)) {
    return new NodeError('OSError', `image file '${name}' is truncated or damaged and cannot be decoded`)
  }
  return unidentified(name)
}

function checkSize(metadata: Metadata, { name, maxPixels }: DecodeOptions): void {
  if (!READABLE.has(metadata.format)) throw unidentified(name)
  const pixels = metadata.width * metadata.height
  if (pixels > maxPixels) throw tooLarge(pixels, maxPixels)
}

/** Channels that a file may decode to at most, and the floats that nodes make of a pixel: three colours and a mask. */
const MAX_CHANNELS = 4
const FLOAT_BYTES = 16
// The EXIF orientation from which on a picture has to be mirrored or rotated.
const FIRST_ROTATED = 2

/** What sharp holds at its peak: the pixels as it collects them and as it hands them over, and once more to rotate them. */
export function decoderBytes({ width, height, depth, orientation = 1 }: Metadata): number {
  const copies = 2 + (orientation >= FIRST_ROTATED ? 1 : 0)
  return width * height * MAX_CHANNELS * (depth === 'uchar' ? 1 : 2) * copies
}

/** The height is that of all frames. */
export function tensorBytes({ width, height }: Metadata): number {
  return width * height * FLOAT_BYTES
}

/** Decodes a picture and hands it to `use`; its memory is counted until that is done. */
export async function withDecodedImage<Result>(
  file: InputFile,
  options: DecodeOptions,
  { work, use }: { readonly work: DecodeWork; use(image: DecodedImage): Result },
): Promise<Result> {
  const metadata = await readHeader(file, options)
  const giveBack = await work.reserve(decoderBytes(metadata), tensorBytes(metadata))
  try {
    const image = await decode(file, metadata, options)
    work.checkpoint()
    return use(image)
  } finally {
    giveBack()
  }
}

async function readHeader(file: InputFile, options: DecodeOptions): Promise<Metadata> {
  try {
    // Reading the header costs nothing, whatever it promises; the limit is ours to check and to explain.
    const metadata = await loadSharp()(file.path, { limitInputPixels: false, pages: -1 }).metadata()
    checkSize(metadata, options)
    return metadata
  } catch (error) {
    throw await toNodeError(error, file, options)
  }
}

async function decode(file: InputFile, metadata: Metadata, options: DecodeOptions): Promise<DecodedImage> {
  try {
    const settings = { limitInputPixels: options.maxPixels, failOn: 'error', ignoreIcc: true } as const
    const isDeep = metadata.depth === 'ushort'
    const frames = metadata.pages ?? 1
    // Photographs are rotated upright; a stack of frames cannot be rotated as one picture.
    const sharp = loadSharp()
    const upright = frames > 1 ? sharp(file.path, { ...settings, pages: -1 }) : sharp(file.path, settings).autoOrient()
    const decoder = upright.toColourspace(isDeep ? 'rgb16' : 'srgb').raw({ depth: isDeep ? 'ushort' : 'uchar' })
    const { data, info } = await decoder.toBuffer({ resolveWithObject: true })
    if (info.channels !== 3 && info.channels !== 4) throw unidentified(options.name)
    return {
      frames,
      width: info.width,
      height: info.height / frames,
      channels: info.channels,
      pixels: isDeep ? new Uint16Array(data.buffer, data.byteOffset, data.length / 2) : data,
      scale: isDeep ? 65535 : 255,
    }
  } catch (error) {
    throw await toNodeError(error, file, options)
  }
}

function toFloat({ pixels, scale }: DecodedImage): (index: number) => number {
  return scale === 255 ? (index) => BYTE_TO_FLOAT[pixels[index]] : (index) => pixels[index] / scale
}

/** Red, green and blue of every frame: [frames, height, width, 3]. */
export function toImageTensor(image: DecodedImage, { allocate, checkpoint }: PixelWork): Tensor {
  const { frames, height, width, channels, pixels, scale } = image
  const result = allocate([frames, height, width, 3])
  const { data } = result
  inBlocks(frames * height * width, checkpoint, (start, end) => {
    for (let pixel = start, from = start * channels, to = start * 3; pixel < end; pixel++, from += channels, to += 3) {
      data[to] = pixels[from] / scale
      data[to + 1] = pixels[from + 1] / scale
      data[to + 2] = pixels[from + 2] / scale
    }
  })
  return result
}

const EMPTY_MASK_SIDE = 64

/** One channel of every frame as a mask; without an alpha channel its mask is empty and 64 pixels square. */
export function toMaskTensor(image: DecodedImage, channel: number, work: PixelWork): Tensor {
  const { frames, height, width, channels } = image
  if (channel >= channels) {
    const empty = work.allocate([frames, EMPTY_MASK_SIDE, EMPTY_MASK_SIDE])
    empty.data.fill(0)
    return empty
  }
  const result = work.allocate([frames, height, width])
  const floatAt = toFloat(image)
  const isAlpha = channel === 3
  inBlocks(result.data.length, work.checkpoint, (start, end) => {
    for (let pixel = start; pixel < end; pixel++) {
      const value = floatAt(pixel * channels + channel)
      // A mask marks what is to be changed: the transparent part.
      result.data[pixel] = isAlpha ? 1 - value : value
    }
  })
  return result
}
