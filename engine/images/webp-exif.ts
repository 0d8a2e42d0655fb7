/**
 * What a WebP file remembers: an EXIF block in which every text is a tag of its own, from 0x0110 downwards. A file of the
 * simple kind gets the extended header that such a block needs.
 */
import type { FileTags } from '../files/file-tags.ts'
import { NodeError } from '../node/node-error.ts'
import { extendedHeader, readRiff, WEBP_FLAGS, writeRiff } from './riff.ts'

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
