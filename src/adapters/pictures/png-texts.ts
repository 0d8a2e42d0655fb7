/** Carries the text chunks of one PNG over into another: a graph that was saved in a picture survives the mask on it. */
const SIGNATURE_LENGTH = 8
const HEAD_LENGTH = 8
const CHECKSUM_LENGTH = 4
const TEXT_TYPES: ReadonlySet<string> = new Set(['tEXt', 'zTXt', 'iTXt'])
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** `to` as it is when `from` is no PNG or has no text. */
export function copyTexts(from: Uint8Array, to: Uint8Array): Uint8Array {
  const texts = readChunks(from).filter(({ type }) => TEXT_TYPES.has(type))
  const [head] = readChunks(to)
  if (texts.length === 0 || head === undefined) return to
  const afterHead = SIGNATURE_LENGTH + head.bytes.byteLength
  return Buffer.concat([to.subarray(0, afterHead), ...texts.map(({ bytes }) => bytes), to.subarray(afterHead)])
}

interface Chunk {
  readonly type: string
  /** With its head and its checksum. */
  readonly bytes: Uint8Array
}

function readChunks(png: Uint8Array): Chunk[] {
  const data = Buffer.from(png.buffer, png.byteOffset, png.byteLength)
  if (!data.subarray(0, SIGNATURE_LENGTH).equals(SIGNATURE)) return []
  const chunks: Chunk[] = []
  for (let at = SIGNATURE_LENGTH; at + HEAD_LENGTH <= data.length; ) {
    const end = at + HEAD_LENGTH + data.readUInt32BE(at) + CHECKSUM_LENGTH
    if (end > data.length) break
    chunks.push({ type: data.toString('latin1', at + 4, at + HEAD_LENGTH), bytes: data.subarray(at, end) })
    at = end
  }
  return chunks
}
