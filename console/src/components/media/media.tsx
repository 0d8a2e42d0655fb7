/**
 * One output, shown as what it is. Pictures stand in `<img>` (SVG too: no script runs there), sound and video in the browser's own
 * players, text as text; everything else is a file to take along.
 */
import { BASE } from '../../base.ts'
import { formatBytes } from '../../text/format.ts'
import { Icon } from '../icon.tsx'
import { Words } from '../words.tsx'
import type { MediaItem } from './media-item.ts'
import { TextOutput } from './text-output.tsx'

export type MediaKind = 'image' | 'video' | 'audio' | 'text' | 'file'

export function kindOf(contentType: string): MediaKind {
  const [type] = contentType.split(';')
  if (type.startsWith('image/')) return 'image'
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('audio/')) return 'audio'
  // HTML is a document with scripts: it is offered as a file.
  if (type === 'text/html') return 'file'
  return type.startsWith('text/') || type === 'application/json' ? 'text' : 'file'
}

export function thumbUrl(assetId: string, width: 64 | 128 | 256 | 512): string {
  return `${BASE}/console/v1/thumbnails/${encodeURIComponent(assetId)}?w=${width}`
}

export function downloadUrl(assetId: string): string {
  return `${BASE}/api/v2/assets/${encodeURIComponent(assetId)}/content?download=1`
}

export function Media({ item }: { readonly item: MediaItem }) {
  const kind = kindOf(item.content_type)
  if (kind === 'image') return <img class="media" src={item.url} alt={item.name} loading="lazy" decoding="async" />
  if (kind === 'video') return <video class="media" src={item.url} controls preload="metadata" aria-label={item.name} />
  if (kind === 'audio') return <audio class="media" src={item.url} controls preload="metadata" aria-label={item.name} />
  if (kind === 'text') return <TextOutput item={item} />
  return (
    <a class="media-file" href={downloadUrl(item.asset_id)} download={item.name}>
      <Icon name="file" />
      <span>
        <Words text={item.name} />
        <span class="dim">
          {item.content_type} · {formatBytes(item.size_bytes)}
        </span>
      </span>
    </a>
  )
}
