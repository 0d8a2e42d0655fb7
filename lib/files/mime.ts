/**
 * Media types by name, by extension and by first bytes. The first extension of a row is the one given to
 * content that has no name; the first row that lists an extension decides its type.
 */
const ROWS: ReadonlyArray<readonly [type: string, ...extensions: string[]]> = [
  ['image/png', 'png', 'apng'],
  ['image/jpeg', 'jpg', 'jpeg', 'jfif'],
  ['image/webp', 'webp'],
  ['image/gif', 'gif'],
  ['image/bmp', 'bmp'],
  ['image/tiff', 'tiff', 'tif'],
  ['image/avif', 'avif'],
  ['image/heic', 'heic', 'heif'],
  ['image/jxl', 'jxl'],
  ['image/x-exr', 'exr'],
  ['image/vnd.radiance', 'hdr'],
  ['image/svg+xml', 'svg'],
  ['image/x-icon', 'ico'],
  ['video/mp4', 'mp4', 'm4v'],
  ['video/webm', 'webm'],
  ['video/x-matroska', 'mkv'],
  ['video/quicktime', 'mov'],
  ['video/x-msvideo', 'avi'],
  ['video/mpeg', 'mpeg', 'mpg'],
  ['audio/wav', 'wav'],
  ['audio/flac', 'flac'],
  ['audio/mpeg', 'mp3'],
  ['audio/ogg', 'ogg', 'oga'],
  ['audio/opus', 'opus'],
  ['audio/mp4', 'm4a'],
  ['audio/aac', 'aac'],
  ['text/plain', 'txt', 'log'],
  ['text/html', 'html', 'htm'],
  ['text/css', 'css'],
  ['text/csv', 'csv'],
  ['text/markdown', 'md'],
  ['text/javascript', 'js', 'mjs'],
  ['text/vtt', 'vtt'],
  ['application/x-subrip', 'srt'],
  ['application/json', 'json'],
  ['application/yaml', 'yaml', 'yml'],
  ['application/xml', 'xml'],
  ['application/xhtml+xml', 'xhtml'],
  ['application/pdf', 'pdf'],
  ['application/zip', 'zip'],
  ['application/x-latent', 'latent'],
  ['application/x-safetensors', 'safetensors'],
  ['application/x-npy', 'npy'],
  ['model/gltf-binary', 'glb'],
  ['model/gltf+json', 'gltf'],
  ['model/obj', 'obj'],
  ['model/stl', 'stl'],
  ['model/ply', 'ply'],
  ['model/vnd.usdz+zip', 'usdz'],
  ['model/x-fbx', 'fbx'],
  ['model/x-splat', 'splat', 'ksplat', 'spz'],
  ['application/octet-stream', 'bin'],
]

/** Other names of types in the table. */
const ALIASES: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
  'image/apng': 'image/png',
  'image/x-ms-bmp': 'image/bmp',
  'image/aces': 'image/x-exr',
  'audio/x-wav': 'audio/wav',
  'audio/wave': 'audio/wav',
  'audio/vnd.wave': 'audio/wav',
  'audio/x-flac': 'audio/flac',
  'audio/mp3': 'audio/mpeg',
  'audio/x-m4a': 'audio/mp4',
  'application/ogg': 'audio/ogg',
  'application/safetensors': 'application/x-safetensors',
  'text/xml': 'application/xml',
  'text/json': 'application/json',
  'application/javascript': 'text/javascript',
}

const TYPE_BY_EXTENSION = new Map<string, string>()
const EXTENSION_BY_TYPE = new Map<string, string>()
for (const [type, ...extensions] of ROWS) {
  for (const extension of extensions) TYPE_BY_EXTENSION.set(extension, type)
  if (extensions[0] !== undefined) EXTENSION_BY_TYPE.set(type, extensions[0])
}

const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
const QUOTED = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\t\\x20-\\x7e])*"'
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|${QUOTED}))*$`)
const MEDIA_TYPE_MAX_LENGTH = 255

/** Types that a browser would execute or that can carry script. Everything `+xml` belongs to them. */
const ACTIVE_TYPES: ReadonlySet<string> = new Set([
  'text/html',
  'text/javascript',
  'text/css',
  'text/xsl',
  'application/xml',
  'application/pdf',
  'application/ecmascript',
  'application/x-javascript',
  'application/x-shockwave-flash',
  'multipart/x-mixed-replace',
  'message/rfc822',
])

/** `type/subtype` with optional parameters, as RFC 9110 writes it, and of bounded length. */
export function isMediaType(text: string): boolean {
  return text.length <= MEDIA_TYPE_MAX_LENGTH && MEDIA_TYPE.test(text)
}

/** Lower case, without parameters, and with the usual name where there are several. */
export function toBareType(contentType: string): string {
  const bare = (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()
  return ALIASES[bare] ?? bare
}

export function isActiveType(contentType: string): boolean {
  const bare = toBareType(contentType)
  return ACTIVE_TYPES.has(bare) || bare.endsWith('+xml')
}

const INERT_FAMILIES: ReadonlySet<string> = new Set(['image', 'video', 'audio', 'model'])
const INERT_TYPES: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'application/zip',
  'application/x-safetensors',
  'application/x-latent',
  'application/x-npy',
])

/** Types that no browser runs or takes for another, also when nothing tells it not to. */
export function isInertType(contentType: string): boolean {
  const bare = toBareType(contentType)
  const isKnown = EXTENSION_BY_TYPE.has(bare) && !isActiveType(bare)
  return isKnown && (INERT_TYPES.has(bare) || INERT_FAMILIES.has(bare.split('/', 1)[0] ?? ''))
}

/** Lower case and without the dot; null when the base name has none, or nothing that looks like one. */
export function extensionOf(name: string): string | null {
  const found = /[^/.]\.([A-Za-z0-9_]{1,16})$/.exec(name)
  return found?.[1]?.toLowerCase() ?? null
}

/** null when the name has no known extension. */
export function typeFromName(name: string): string | null {
  const extension = extensionOf(name)
  return extension === null ? null : (TYPE_BY_EXTENSION.get(extension) ?? null)
}

/** Without the dot; null for types that are not in the table. */
export function extensionFromType(contentType: string): string | null {
  return EXTENSION_BY_TYPE.get(toBareType(contentType)) ?? null
}

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
  ['image/x-exr', 0, '\x76\x2f\x31\x01'],
  ['image/vnd.radiance', 0, '#?RADIANCE'],
  ['video/quicktime', 4, 'ftypqt'],
  ['audio/mp4', 4, 'ftypM4A'],
  ['video/mp4', 4, 'ftyp'],
  ['video/webm', 0, '\x1a\x45\xdf\xa3'],
  ['video/x-msvideo', 8, 'AVI '],
  ['audio/wav', 8, 'WAVE'],
  ['audio/mpeg', 0, 'ID3'],
  ['audio/mpeg', 0, '\xff\xfb'],
  ['audio/mpeg', 0, '\xff\xf3'],
  ['audio/mpeg', 0, '\xff\xf2'],
  ['audio/aac', 0, '\xff\xf1'],
  ['audio/aac', 0, '\xff\xf9'],
  ['audio/ogg', 0, 'OggS'],
  ['audio/flac', 0, 'fLaC'],
  ['model/gltf-binary', 0, 'glTF'],
  ['model/ply', 0, 'ply\n'],
  ['model/x-fbx', 0, 'Kaydara FBX Binary'],
  ['application/pdf', 0, '%PDF'],
]

/** Whether every file of this type begins with bytes that `sniffType` knows. */
export function hasSignature(contentType: string): boolean {
  return SIGNATURES.some(([type]) => type === contentType)
}

/** How many bytes from the start are enough. */
export const SNIFF_BYTES = 512

/** null when the first bytes match no known type. */
export function sniffType(start: Uint8Array): string | null {
  const text = Buffer.from(start.buffer, start.byteOffset, Math.min(start.byteLength, SNIFF_BYTES)).toString('latin1')
  const found = SIGNATURES.find(([, offset, bytes]) => text.startsWith(bytes, offset))
  if (found !== undefined) return found[0]
  if (/^(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body|script|title|iframe)[\s>]/is.test(text))
    return 'text/html'
  return /^\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<svg[\s>]/is.test(text) ? 'image/svg+xml' : null
}
