/**
 * Texts that media files carry beside their content, by name: the text chunks of a PNG, the EXIF of a WebP, the comments of a FLAC, the
 * metadata of an MP4 or MOV, the header of a safetensors file. Only what lies in the way is read; a damaged file gives what was found
 * before the damage.
 */
import { BoundedReader, type ByteSource, TooMuchMetadataError } from './byte-source.ts'
import { readFlacTexts } from './flac-texts.ts'
import { readMp4Texts } from './mp4-texts.ts'
import { readPngTexts } from './png-texts.ts'
import { readSafetensorsTexts } from './safetensors-texts.ts'
import { readWebpTexts } from './webp-texts.ts'

export type EmbeddedTexts = ReadonlyMap<string, string>

type ReadTexts = (reader: BoundedReader) => Map<string, string>

const HEAD_BYTES = 16
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

/** null: no file of a kind that is known here. */
export function readEmbeddedTexts(source: ByteSource): EmbeddedTexts | null {
  const reader = new BoundedReader(source)
  const read = readerOf(reader.read(0, HEAD_BYTES), source.size)
  if (read === null) return null
  try {
    return read(reader)
  } catch (error) {
    // Damaged lengths lead outside of what was read; text that cannot be unpacked is no text.
    const isDamage = error instanceof RangeError || error instanceof TooMuchMetadataError
    if (isDamage || (error instanceof Error && 'code' in error)) return new Map()
    throw error
  }
}

function readerOf(head: Buffer, size: number): ReadTexts | null {
  const has = (text: string, at: number) => head.toString('latin1', at, at + text.length) === text
  if (head.subarray(0, PNG.length).equals(PNG)) return readPngTexts
  if (has('RIFF', 0) && has('WEBP', 8)) return readWebpTexts
  if (has('fLaC', 0)) return readFlacTexts
  if (has('ftyp', 4)) return readMp4Texts
  const isHeader = head.length >= 9 && head[8] === 0x7b && head.readBigUInt64LE(0) <= BigInt(size)
  return isHeader ? readSafetensorsTexts : null
}
