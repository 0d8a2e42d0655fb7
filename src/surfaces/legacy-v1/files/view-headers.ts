/** Headers of files as ComfyUI sends them. A type that a browser would run is only ever downloaded. */

import { isActiveType, isMediaType } from '../../../../lib/files/mime.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import type { Picture } from '../../../domain/assets/pictures.ts'
import { toFileNameParameters } from '../../kit/content/content-disposition.ts'

interface FileHeaderOptions {
  readonly name: string
  readonly etag: string
  /** `Sec-Fetch-Dest`: what the browser wants the file for. */
  readonly fetchDest: string | string[] | undefined
}

type Headers = Readonly<Record<string, string>>

export function toFileHeaders(asset: Asset, { name, etag, fetchDest }: FileHeaderOptions): Headers {
  const contentType = isMediaType(asset.contentType) ? asset.contentType : 'application/octet-stream'
  const common = {
    etag,
    'last-modified': asset.createdAt.toUTCString(),
    'accept-ranges': 'bytes',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
  }
  if (!isActiveType(contentType)) {
    return {
      ...common,
      'content-type': contentType,
      'content-disposition': toDisposition(name),
      'cache-control': 'private, no-cache',
    }
  }
  // An <img> runs nothing in an SVG; anything else might.
  const isPicture = contentType.startsWith('image/') && fetchDest === 'image'
  return {
    ...common,
    'content-type': isPicture ? contentType : 'application/octet-stream',
    'content-disposition': isPicture ? toDisposition(name) : `attachment; ${toDisposition(name)}`,
    vary: 'Sec-Fetch-Dest',
    'cache-control': 'no-store',
  }
}

export function toPictureHeaders({ contentType }: Picture, name: string): Headers {
  return {
    'content-type': contentType,
    'content-disposition': toDisposition(name),
    'cache-control': 'private, no-cache',
  }
}

/** As ComfyUI writes it, without `inline`; a name beyond ASCII is sent in the extended form as well (RFC 5987). */
function toDisposition(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]/g, '_').replace(/["\\]/g, '\\$&')
  return toFileNameParameters(name, ascii, /^[\x20-\x7e]*$/.test(name))
}
