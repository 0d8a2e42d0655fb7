/**
 * Headers of delivered content. Whatever it is, it is somebody's upload on our origin: never sniffed, never run, and what a
 * browser would run is only ever downloaded.
 */

import { extensionFromType, isActiveType, isMediaType } from '../../../../lib/mime.ts'
import type { Asset } from '../../../domain/assets/asset.ts'

const UNKNOWN_TYPE = 'application/octet-stream'

export function toContentHeaders(asset: Asset): Readonly<Record<string, string>> {
  return {
    // Outputs carry whatever their engine said.
    'content-type': isMediaType(asset.contentType) ? asset.contentType : UNKNOWN_TYPE,
    'content-disposition': toDisposition(asset),
    'accept-ranges': 'bytes',
    etag: toEtag(asset),
    // The bytes of an id never change, but the record may go: ask each time, and get a 304.
    'cache-control': 'private, no-cache',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
  }
}

export function toEtag(asset: Asset): string {
  return `"${asset.hash}"`
}

function toDisposition(asset: Asset): string {
  const kind = isActiveType(asset.contentType) ? 'attachment' : 'inline'
  const name = asset.filePath?.split('/').at(-1) ?? `${asset.id}.${extensionFromType(asset.contentType) ?? 'bin'}`
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const plain = `${kind}; filename="${ascii}"`
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

/** RFC 5987: encodeURIComponent leaves a few characters that its grammar does not allow. */
function encodeExtended(name: string): string {
  const escaped = encodeURIComponent(name.toWellFormed())
  return escaped.replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Does the client hold this content already? Weak and strong forms compare alike here (RFC 9110, 13.1.2). */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((candidate) => {
    const tag = candidate.trim()
    return tag === '*' || tag === etag || tag === `W/${etag}`
  })
}
