/**
 * One output, shown as what it is. Pictures stand in `<img>` (SVG too: no script runs there), sound and video in the browser's own
 * players, text as text; everything else is a file to take along.
 */
import { useEffect, useState } from 'preact/hooks'
import { BASE } from '../../routes.ts'
import { formatBytes } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { Icon } from '../icon.tsx'
import { Words } from '../text.tsx'

/** Bytes that somebody may look at: an output or an upload. */
export interface MediaItem {
  readonly asset_id: string
  readonly name: string
  readonly content_type: string
  readonly size_bytes: number
  readonly url: string
}

type MediaKind = 'image' | 'video' | 'audio' | 'text' | 'file'

export function kindOf(contentType: string): MediaKind {
  const [type] = contentType.split(';')
  if (type.startsWith('image/')) return 'image'
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('audio/')) return 'audio'
  // HTML is a document with scripts: it is offered as a file.
  if (type === 'text/html') return 'file'
  return type.startsWith('text/') || type === 'application/json' ? 'text' : 'file'
}

function thumbUrl(assetId: string, width: 64 | 128 | 256 | 512): string {
  return `${BASE}/console/v1/thumbnails/${encodeURIComponent(assetId)}?w=${width}`
}

export function downloadUrl(assetId: string): string {
  return `${BASE}/api/v2/assets/${encodeURIComponent(assetId)}/content?download=1`
}

export function Media({ item }: { readonly item: MediaItem }) {
  const kind = kindOf(item.content_type)
  const name = toMarkedText(item.name)
  if (kind === 'image') return <img class="media" src={item.url} alt={name} loading="lazy" decoding="async" />
  if (kind === 'video') return <video class="media" src={item.url} controls preload="metadata" aria-label={name} />
  if (kind === 'audio') return <audio class="media" src={item.url} controls preload="metadata" aria-label={name} />
  if (kind === 'text') return <TextOutput item={item} download={downloadUrl(item.asset_id)} />
  return (
    <a class="media-file" href={downloadUrl(item.asset_id)} download={name}>
      <Icon name="file" />
      <span>
        <Words text={item.name} />
        <span class="dim">
          {toMarkedText(item.content_type)} · {formatBytes(item.size_bytes)}
        </span>
      </span>
    </a>
  )
}

const MAX_BYTES = 256 * 1024

/** The beginning of a text, as text. */
function TextOutput({ item, download }: { readonly item: MediaItem; readonly download: string }) {
  const [text, setText] = useState<string | null>(null)
  const [hasFailed, setFailed] = useState(false)
  useEffect(() => {
    const controller = new AbortController()
    setFailed(false)
    readBeginning(item.url, controller.signal)
      .then(setText)
      .catch(() => setFailed(!controller.signal.aborted))
    return () => controller.abort()
  }, [item.url])
  if (hasFailed)
    return (
      <p class="media-text" role="alert">
        This text could not be read.{' '}
        <a href={download} download={toMarkedText(item.name)}>
          Download it
        </a>
      </p>
    )
  return (
    <pre class="media-text" tabIndex={0} aria-label={toMarkedText(item.name)} aria-busy={text === null}>
      <Words text={text ?? ''} isBlock />
      {item.size_bytes > MAX_BYTES && <span class="dim">… cut at 256 KiB</span>}
    </pre>
  )
}

async function readBeginning(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal, credentials: 'same-origin' })
  if (!response.ok) throw new Error(`answered ${response.status}`)
  if (response.body === null) return ''
  const reader = response.body.getReader()
  const parts: Uint8Array[] = []
  let size = 0
  for (let part = await reader.read(); !part.done && size < MAX_BYTES; part = await reader.read()) {
    parts.push(part.value)
    size += part.value.length
  }
  await reader.cancel()
  const bytes = new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer())
  return new TextDecoder().decode(bytes.subarray(0, MAX_BYTES))
}

interface ThumbProps {
  readonly assetId: string
  readonly type: string
  readonly alt: string
  readonly width: 64 | 128 | 256 | 512
}

/** A small picture of an output, or a drawing of its kind. */
export function Thumb({ assetId, type, alt, width }: ThumbProps) {
  const [isBroken, setBroken] = useState(false)
  // The service draws small ones of pictures alone.
  const isPicture = type.startsWith('image')
  if (!isPicture || isBroken)
    return (
      <span class="thumb-sign" role={alt === '' ? undefined : 'img'} aria-label={alt === '' ? undefined : alt}>
        <Icon name={type.startsWith('audio') ? 'sound' : type.startsWith('video') ? 'play' : 'file'} />
      </span>
    )
  return (
    <img
      class="thumb"
      src={thumbUrl(assetId, width)}
      alt={alt}
      loading="lazy"
      decoding="async"
      onError={() => setBroken(true)}
    />
  )
}

interface CompareSliderProps {
  readonly a: { readonly url: string; readonly name: string }
  readonly b: { readonly url: string; readonly name: string }
}

/** Two pictures one above the other; the slider says how much of the first is seen. */
export function CompareSlider({ a, b }: CompareSliderProps) {
  const [share, setShare] = useState(50)
  return (
    <div class="compare">
      <div class="compare-pictures">
        <img src={b.url} alt={toMarkedText(b.name)} />
        <img src={a.url} alt={toMarkedText(a.name)} style={{ clipPath: `inset(0 ${100 - share}% 0 0)` }} />
        <div class="compare-line" style={{ left: `${share}%` }} aria-hidden="true" />
      </div>
      <input
        type="range"
        min={0}
        max={100}
        value={share}
        aria-label="How much of the first picture is seen"
        onInput={(event) => setShare(Number(event.currentTarget.value))}
      />
    </div>
  )
}
