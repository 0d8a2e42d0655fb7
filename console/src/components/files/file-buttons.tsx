/** Where a file comes from: this machine, by button or by dropping it, or the service, which may have it already. */
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { lazy } from '../../lazy.tsx'
import { toMarkedText } from '../../text/marks.ts'
import { Icon } from '../icon.tsx'
import type { MediaItem } from '../media/media.tsx'

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

/** A place that takes files: dropped on it, or chosen with a field inside. */
interface DropTargetOptions {
  readonly isSeveral: boolean
  readonly onFiles: (files: readonly File[]) => void
}

/** `place` goes to the element that files are dropped on, `field` to its file input. */
function useDropTarget({ isSeveral, onFiles }: DropTargetOptions) {
  const [isOver, setOver] = useState(false)
  const take = (list: FileList | null | undefined) => {
    const files = [...(list ?? [])].slice(0, isSeveral ? undefined : 1)
    if (files.length > 0) onFiles(files)
  }
  return {
    isOver,
    place: {
      onDragOver: (event: DragEvent) => {
        event.preventDefault()
        setOver(true)
      },
      onDragLeave: () => setOver(false),
      onDrop: (event: DragEvent) => {
        event.preventDefault()
        setOver(false)
        take(event.dataTransfer?.files)
      },
    },
    field: {
      type: 'file',
      class: 'unseen',
      multiple: isSeveral,
      onChange: ({ currentTarget }: { readonly currentTarget: HTMLInputElement }) => {
        take(currentTarget.files)
        // The same file can be chosen again.
        currentTarget.value = ''
      },
    },
  } as const
}

interface FileDropProps {
  readonly label: string
  readonly hint: string
  readonly accept: string
  readonly isSeveral?: boolean
  readonly onFiles: (files: readonly File[]) => void
}

/** Takes files by dropping or by choosing them. */
export function FileDrop({ label, hint, accept, isSeveral = false, onFiles }: FileDropProps) {
  const chooser = useRef<HTMLInputElement>(null)
  const { isOver, place, field } = useDropTarget({ isSeveral, onFiles })
  return (
    <div class={`file-drop ${isOver ? 'over' : ''}`} {...place}>
      <button type="button" class="button" onClick={() => chooser.current?.click()}>
        {label}
      </button>
      <span class="dim">{hint}</span>
      <input ref={chooser} {...field} tabIndex={-1} aria-label={label} accept={accept} />
    </div>
  )
}
