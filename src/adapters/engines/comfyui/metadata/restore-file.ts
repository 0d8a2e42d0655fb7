/**
 * The bytes of a file that the server saved, with the caller's graph in its metadata instead of the one that was rewritten for
 * the server. Pictures, sound and everything else stay byte for byte the same. A container with checksums or lengths is parsed as
 * far as its metadata; where only lengths matter, the text keeps its length; files of other kinds pass unchanged. Memory is bounded
 * for any file.
 */

import { ByteReader, restoreMatroska, restoreOgg, restorePng } from './restore-containers.ts'
import { LOOK_BEHIND_BYTES, NameFinder, type RewrittenNames } from './rewritten-names.ts'

const SNIFF_BYTES = 16
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const MATROSKA = Buffer.from('1a45dfa3', 'hex')
const JPEG = Buffer.from('ffd8ff', 'hex')
const MP3_FRAME = 0xff
const TEXTUAL = /\.(?:json|txt|svg|gltf|csv|md|xml|html|yaml|yml|srt|vtt)$/i
const SAFETENSORS = /\.(?:safetensors|sft|latent)$/i

type Restore = (reader: ByteReader) => AsyncGenerator<Uint8Array>

export async function* restoreFile(
  bytes: AsyncIterable<Uint8Array>,
  filename: string,
  names: RewrittenNames,
): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(bytes)
  try {
    const restore = restoreOf(await reader.peek(SNIFF_BYTES), filename, names)
    yield* restore === null ? reader.rest() : restore(reader)
  } finally {
    await reader.close()
  }
}

function restoreOf(head: Buffer, filename: string, names: RewrittenNames): Restore | null {
  const startsWith = (magic: Buffer | string) => head.subarray(0, magic.length).equals(Buffer.from(magic))
  if (startsWith(PNG)) return (reader) => restorePng(reader, new NameFinder(names, 'exact'))
  const finder = new NameFinder(names, 'padded')
  if (startsWith('OggS')) return (reader) => restoreOgg(reader, finder)
  if (startsWith(MATROSKA)) return (reader) => restoreMatroska(reader, finder)
  const keepsLengthsOnly =
    startsWith('RIFF') || // webp, wav, avi
    startsWith('fLaC') ||
    startsWith('ID3') ||
    startsWith('glTF') ||
    startsWith('GIF8') ||
    startsWith(JPEG) ||
    (head[0] === MP3_FRAME && /\.mp3$/i.test(filename)) ||
    head.subarray(4, 8).equals(Buffer.from('ftyp')) || // mp4, mov, m4a, avif, heic
    TEXTUAL.test(filename) ||
    SAFETENSORS.test(filename)
  return keepsLengthsOnly ? (reader) => restoreAnywhere(reader, finder) : null
}

/** Replaces names anywhere in the file, each by a text of the same length. */
async function* restoreAnywhere(reader: ByteReader, finder: NameFinder): AsyncGenerator<Uint8Array> {
  const keepBytes = finder.longestBytes + LOOK_BEHIND_BYTES
  let bytes: Buffer = Buffer.alloc(0)
  let from = 0
  for await (const part of reader.rest()) {
    bytes =
      bytes.length === 0 ? Buffer.from(part.buffer, part.byteOffset, part.byteLength) : Buffer.concat([bytes, part])
    const { done, whole } = restoreWithin(bytes, from, finder, false)
    const cut = Math.max(0, Math.min(done, whole.length - keepBytes))
    if (cut > 0) yield whole.subarray(0, cut)
    bytes = whole.subarray(cut)
    from = Math.max(0, done - cut - finder.longestBytes)
  }
  if (bytes.length > 0) yield restoreWithin(bytes, from, finder, true).whole
}

/** `done`: up to where the bytes are final. */
function restoreWithin(
  bytes: Buffer,
  from: number,
  finder: NameFinder,
  isEnd: boolean,
): { readonly done: number; readonly whole: Buffer } {
  let at = from
  while (true) {
    const match = finder.next(bytes, at, isEnd)
    if (match === null) return { done: bytes.length, whole: bytes }
    if (typeof match === 'number') return { done: Math.max(0, match - LOOK_BEHIND_BYTES), whole: bytes }
    // The replacement has the length of what it replaces.
    bytes.set(match.bytes, match.start)
    at = match.start + match.bytes.length
  }
}
