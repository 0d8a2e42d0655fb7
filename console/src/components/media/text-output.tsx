/** The beginning of a text, as text. */
import { useEffect, useState } from 'preact/hooks'
import { Words } from '../words.tsx'
import type { MediaItem } from './media-item.ts'

const MAX_BYTES = 256 * 1024

export function TextOutput({ item }: { readonly item: MediaItem }) {
  const [text, setText] = useState<string | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    readBeginning(item.url, controller.signal)
      .then(setText)
      .catch(() => setText(''))
    return () => controller.abort()
  }, [item.url])
  return (
    <pre class="media-text" tabIndex={0} aria-label={item.name}>
      <Words text={text ?? ''} isBlock />
      {item.size_bytes > MAX_BYTES && <span class="dim">… cut at 256 KiB</span>}
    </pre>
  )
}

async function readBeginning(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal, credentials: 'same-origin' })
  if (!response.ok || response.body === null) return ''
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
