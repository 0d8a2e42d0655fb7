/** PNG, JPEG, WebP and GIF: what does not make the picture is blanked. */
import { crc32 } from 'node:zlib'
import type { PartReader, Patch } from './patches.ts'

// All that decides what a PNG, or an animated one, looks like.
const PNG_KEPT: ReadonlySet<string> = new Set([
  ...['IHDR', 'PLTE', 'IDAT', 'IEND', 'tRNS', 'gAMA', 'cHRM', 'sRGB', 'iCCP', 'sBIT', 'bKGD', 'hIST', 'pHYs', 'sPLT'],
  ...['acTL', 'fcTL', 'fdAT', 'cICP', 'mDCV', 'cLLI'],
])
// Readers step over chunks that they do not know, where the first letter is small.
const VOID_CHUNK = Buffer.from('voId', 'latin1')
const ZEROS = Buffer.alloc(65_536)

export async function blankPng(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = 8; at + 12 <= reader.size; ) {
    const head = await reader.read(at, 8)
    const length = head.readUInt32BE(0)
    const type = head.toString('latin1', 4, 8)
    const end = at + 12 + length
    // What is cut off, or claims more than there is, shows nothing.
    if (end > reader.size) return [...patches, { at, length: reader.size - at }]
    if (!PNG_KEPT.has(type)) {
      const checksum = Buffer.alloc(4)
      checksum.writeUInt32BE(checksumOfVoid(length))
      patches.push({ at: at + 4, length: 4, bytes: VOID_CHUNK }, { at: at + 8, length })
      patches.push({ at: at + 8 + length, length: 4, bytes: checksum })
    }
    at = end
    if (type === 'IEND') return withRest(reader, patches, at)
  }
  return patches
}

function checksumOfVoid(length: number): number {
  let checksum = crc32(VOID_CHUNK)
  for (let left = length; left > 0; left -= ZEROS.length)
    checksum = crc32(ZEROS.subarray(0, Math.min(left, ZEROS.length)), checksum)
  return checksum
}

function withRest({ size }: PartReader, patches: readonly Patch[], at: number): Patch[] {
  return at < size ? [...patches, { at, length: size - at }] : [...patches]
}

const JPEG_START_OF_SCAN = 0xda
const JPEG_END = 0xd9
const isAlone = (marker: number) => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)

export async function blankJpeg(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = 2; at + 2 <= reader.size; ) {
    const head = await reader.read(at, 18)
    const marker = head[1]
    if (head[0] !== 0xff) return withRest(reader, patches, at)
    if (marker === JPEG_END) return withRest(reader, patches, at + 2)
    if (marker === 0xff || isAlone(marker)) {
      at += marker === 0xff ? 1 : 2
      continue
    }
    if (head.length < 4) return withRest(reader, patches, at)
    const length = Math.max(2, head.readUInt16BE(2))
    if (!isKeptSegment(marker, head.toString('latin1', 4, 16)))
      patches.push({ at: at + 4, length: Math.min(length - 2, Math.max(0, reader.size - at - 4)) })
    at += 2 + length
    if (marker === JPEG_START_OF_SCAN) at = await endOfScan(reader, at)
  }
  return patches
}

/** JFIF, colour profiles and Adobe's word on the colours; of the others those that are no application's data and no comment. */
function isKeptSegment(marker: number, begin: string): boolean {
  if (marker === 0xe0 || marker === 0xee) return true
  if (marker === 0xe2) return begin.startsWith('ICC_PROFILE\0')
  return marker !== 0xfe && !(marker >= 0xe1 && marker <= 0xef)
}

/** Where the next marker stands behind the coded data of a scan. */
async function endOfScan(reader: PartReader, start: number): Promise<number> {
  for (let at = start; at < reader.size; ) {
    const piece = await reader.read(at, 32_768)
    for (let found = piece.indexOf(0xff); found !== -1; found = piece.indexOf(0xff, found + 1)) {
      // The last byte is looked at again, with what follows it.
      if (found + 1 >= piece.length) break
      const next = piece[found + 1]
      if (next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at + found
    }
    at += Math.max(1, piece.length - (piece.at(-1) === 0xff && at + piece.length < reader.size ? 1 : 0))
  }
  return reader.size
}

const WEBP_KEPT: ReadonlySet<string> = new Set(['VP8 ', 'VP8L', 'VP8X', 'ANIM', 'ANMF', 'ALPH', 'ICCP'])
// Before the chunks of a frame of an animation: its place, size and time.
const FRAME_HEAD_BYTES = 16
// That there are EXIF and XMP.
const METADATA_FLAGS = 0x0c

export async function blankWebp(reader: PartReader, start = 12, end = reader.size): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = start; at + 8 <= end; ) {
    const head = await reader.read(at, 9)
    const type = head.toString('latin1', 0, 4)
    const length = head.readUInt32LE(4)
    const content = at + 8
    const next = Math.min(end, content + length + (length % 2))
    if (type === 'ANMF')
      for (const patch of await blankWebp(reader, content + FRAME_HEAD_BYTES, next)) patches.push(patch)
    else if (type === 'VP8X' && head.length === 9)
      patches.push({ at: content, length: 1, bytes: Buffer.of(head[8] & ~METADATA_FLAGS) })
    else if (!WEBP_KEPT.has(type)) patches.push(...toJunk(at, next))
    at = next
  }
  return patches
}

const JUNK = Buffer.from('JUNK', 'latin1')

/** A chunk of a RIFF file as one that all readers step over. */
export function toJunk(at: number, end: number): Patch[] {
  return [
    { at, length: 4, bytes: JUNK },
    { at: at + 8, length: Math.max(0, end - at - 8) },
  ]
}

const GIF_KEPT: ReadonlySet<string> = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0', 'ICCRGBG1012'])

export async function blankGif(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  const head = await reader.read(0, 13)
  let at = 13 + tableBytes(head[10])
  while (at < reader.size) {
    const block = await reader.read(at, 14)
    if (block[0] === 0x2c && block.length >= 10) {
      at = await stepOverParts(reader, at + 11 + tableBytes(block[9]), null)
    } else if (block[0] === 0x21 && block.length >= 2) {
      const isApplication = block[1] === 0xff
      const isHidden = block[1] === 0xfe || (isApplication && !GIF_KEPT.has(block.toString('latin1', 3, 14)))
      at = await stepOverParts(reader, at + 2, isHidden ? patches : null)
    } else return withRest(reader, patches, block[0] === 0x3b ? at + 1 : at)
  }
  return patches
}

const tableBytes = (flags: number) => ((flags & 0x80) === 0 ? 0 : 3 << ((flags & 7) + 1))

/** Data comes in parts of up to 255 bytes; one of none ends it. */
async function stepOverParts(reader: PartReader, start: number, patches: Patch[] | null): Promise<number> {
  let at = start
  while (at < reader.size) {
    const [length] = await reader.read(at, 1)
    if (length === 0) return at + 1
    patches?.push({ at: at + 1, length: Math.min(length, reader.size - at - 1) })
    at += 1 + length
  }
  return at
}
