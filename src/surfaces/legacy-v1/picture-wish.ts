/** What a query of `/view` wants done to a picture, if anything. What cannot be read is as if it had not been said. */
import type { PreviewFormat } from '../../domain/assets/pictures.ts'

export type PictureWish =
  | { readonly kind: 'channel'; readonly channel: 'rgb' | 'a' }
  | { readonly kind: 'preview'; readonly format: PreviewFormat; readonly quality: number; readonly fitPixels?: number }

const DEFAULT_QUALITY = 90
const THUMBNAIL_MIN = 64
const THUMBNAIL_MAX = 1024

export function readPictureWish(query: URLSearchParams): PictureWish | null {
  const channel = query.get('channel') ?? ''
  const preview = query.get('preview')
  if (preview !== null) return readPreview(preview, channel)
  if (channel === 'rgb') return { kind: 'channel', channel: 'rgb' }
  if (channel === 'a' || channel === 'alpha') return { kind: 'channel', channel: 'a' }
  const size = Number.parseInt(query.get('res') ?? '', 10)
  if (!Number.isInteger(size)) return null
  const fitPixels = Math.min(THUMBNAIL_MAX, Math.max(THUMBNAIL_MIN, size))
  return { kind: 'preview', format: 'jpeg', quality: DEFAULT_QUALITY, fitPixels }
}

/** `webp;50`. A preview that must keep its alpha is never a JPEG. */
function readPreview(text: string, channel: string): PictureWish {
  const [wanted, quality] = text.split(';')
  const format = wanted === 'jpeg' && !channel.includes('a') ? 'jpeg' : 'webp'
  const number = Number.parseInt(quality ?? '', 10)
  return { kind: 'preview', format, quality: number >= 1 && number <= 100 ? number : DEFAULT_QUALITY }
}
