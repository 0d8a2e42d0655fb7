/** Where a file comes from: this machine, by button or by dropping it, or the service, which may have it already. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { lazy } from '../../lazy.tsx'
import { toMarkedText } from '../../text/marks.ts'
import { Icon } from '../icon.tsx'
import type { MediaItem } from '../media/media-item.ts'
import { useDropTarget } from './drop-target.ts'

const AssetPicker = lazy(() => import('./asset-picker.tsx').then((module) => module.AssetPicker))

interface FileButtonsProps {
  readonly label: string
  readonly media: string | null
  readonly isSeveral?: boolean
  readonly isBusy: boolean
  readonly onFiles: (files: readonly File[]) => void
  readonly onAssets: (assets: readonly MediaItem[]) => void
  readonly children: ComponentChildren
}

export function FileButtons(props: FileButtonsProps) {
  const { label, media, isSeveral = false, isBusy, onFiles, onAssets, children } = props
  const [isPicking, setPicking] = useState(false)
  const { isOver, place, field } = useDropTarget({ isSeveral, onFiles })
  return (
    <div class={`file-control ${isOver ? 'over' : ''}`} {...place}>
      {children}
      <label class="button small">
        <Icon name="up" /> {isBusy ? 'Uploading…' : 'Upload'}
        <input
          {...field}
          disabled={isBusy}
          aria-label={`File for ${toMarkedText(label)}`}
          accept={media === null ? undefined : `${media}/*`}
        />
      </label>
      <button
        type="button"
        class="button small"
        aria-label={`Choose a file for ${toMarkedText(label)}`}
        onClick={() => setPicking(true)}
      >
        <Icon name="picture" /> Choose
      </button>
      {isPicking && (
        <AssetPicker
          media={media}
          isSeveral={isSeveral}
          onClose={() => setPicking(false)}
          onChoose={(chosen: readonly MediaItem[]) => {
            setPicking(false)
            onAssets(chosen)
          }}
        />
      )}
    </div>
  )
}
