/** The media type of a file by its first bytes, for the media that models take and give. Names and headers may be wrong. */
const SIGNATURES: readonly (readonly [type: string, offset: number, bytes: string])[] = [
  ['image/png', 0, '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', 0, '\xff\xd8\xff'],
  ['image/gif', 0, 'GIF8'],
  ['image/webp', 8, 'WEBP'],
  ['image/avif', 4, 'ftypavif'],
  ['image/avif', 4, 'ftypavis'],
  ['image/heic', 4, 'ftyphei'],
  ['image/tiff', 0, 'II*\0'],
  ['image/tiff', 0, 'MM\0*'],
  ['image/bmp', 0, 'BM'],
  ['video/quicktime', 4, 'ftypqt'],
  ['audio/mp4', 4, 'ftypM4A'],
  ['video/mp4', 4, 'ftyp'],
  ['video/webm', 0, '\x1a\x45\xdf\xa3'],
  ['audio/wav', 8, 'WAVE'],
  ['audio/mpeg', 0, 'ID3'],
  ['audio/mpeg', 0, '\xff\xfb'],
  ['audio/mpeg', 0, '\xff\xf3'],
  ['audio/ogg', 0, 'OggS'],
  ['audio/flac', 0, 'fLaC'],
  ['application/pdf', 0, '%PDF'],
]

/** How many bytes from the start are enough. */
export const SNIFF_BYTES = 512

/** null when the first bytes match no known type. */
export function sniffType(start: Uint8Array): string | null {
  const text = Buffer.from(start.buffer, start.byteOffset, Math.min(start.byteLength, SNIFF_BYTES)).toString('latin1')
  const found = SIGNATURES.find(([, offset, bytes]) => text.startsWith(bytes, offset))
  if (found !== undefined) return found[0]
  return /^\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<svg[\s>]/is.test(text) ? 'image/svg+xml' : null
}
