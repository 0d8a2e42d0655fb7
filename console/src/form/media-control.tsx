/** A picture, video or sound for a model: its bytes go into the input itself, or an address that the provider can reach is typed. */
import { useState } from 'preact/hooks'
import { request } from '../api/client.ts'
import { FileButtons } from '../components/files/file-buttons.tsx'
import { Icon } from '../components/icon.tsx'
import type { MediaItem } from '../components/media/media-item.ts'
import { Words } from '../components/words.tsx'
import { formatBytes } from '../text/format.ts'
import { bytesOf, type MediaForm, writeMedia } from './schema/media-form.ts'

/** Larger ones would not pass as a part of a request. */
const MAX_BYTES = 24 * 1024 * 1024

interface MediaControlProps {
  readonly id: string
  readonly label: string
  readonly media: MediaForm
  readonly text: string
  readonly fileName: string | undefined
  readonly isWrong: boolean
  readonly describedBy: string | undefined
  readonly onText: (text: string, fileName?: string) => void
}

export function MediaControl(props: MediaControlProps) {
  const { id, label, media, text, fileName, isWrong, describedBy, onText } = props
  const [state, setState] = useState<'idle' | 'busy' | string>('idle')
  async function take(name: string, size: number, read: () => Promise<Blob>): Promise<void> {
    if (size > MAX_BYTES) return setState(`at most ${formatBytes(MAX_BYTES)} fit into a call`)
    setState('busy')
    try {
      onText(writeMedia(await toDataUri(await read()), media), name)
      setState('idle')
    } catch {
      setState('this file could not be read')
    }
  }
  const bytes = bytesOf(text)
  return (
    <>
      <FileButtons
        label={label}
        media={media.kind}
        isBusy={state === 'busy'}
        onFiles={([file]) => void take(file.name, file.size, () => Promise.resolve(file))}
        onAssets={([asset]) => void take(asset.name, asset.size_bytes, () => readAsset(asset))}
      >
        {bytes === null ? (
          <input
            id={id}
            type="text"
            spellcheck={false}
            placeholder="an address, or a file"
            aria-invalid={isWrong}
            aria-describedby={describedBy}
            value={text}
            onInput={(event) => onText(event.currentTarget.value)}
          />
        ) : (
          <span class="file-chip">
            {text.startsWith('data:image/') && <img class="file-chip-picture" src={text} alt="" />}
            <span class="file-chip-name">
              <Words text={fileName ?? 'a file'} /> <span class="dim">{formatBytes(bytes)}</span>
            </span>
            <button type="button" id={id} class="icon-button" aria-label="Take it away" onClick={() => onText('')}>
              <Icon name="cross" />
            </button>
          </span>
        )}
      </FileButtons>
      {state !== 'idle' && state !== 'busy' && <p class="failed-text field-note">{state}</p>}
    </>
  )
}

async function readAsset({ asset_id: assetId }: MediaItem): Promise<Blob> {
  return (await request(`/api/v2/assets/${encodeURIComponent(assetId)}/content`)).blob()
}

function toDataUri(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
}
