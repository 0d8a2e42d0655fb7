/** A place that takes files: dropped on it, or chosen with a field inside. */
import { useState } from 'preact/hooks'

interface DropTargetOptions {
  readonly isSeveral: boolean
  readonly onFiles: (files: readonly File[]) => void
}

/** `place` goes to the element that files are dropped on, `field` to its file input. */
export function useDropTarget({ isSeveral, onFiles }: DropTargetOptions) {
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
