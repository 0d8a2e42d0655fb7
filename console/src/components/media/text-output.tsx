/** The beginning of a text, as text. */
import { useEffect, useState } from 'preact/hooks'
import { toMarkedText } from '../../text/marks.ts'
import { Words } from '../words.tsx'
import type { MediaItem } from './media-item.ts'

const MAX_BYTES = 256 * 1024

export function TextOutput({ item, download }: { readonly item: MediaItem; readonly download: string }) {
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
