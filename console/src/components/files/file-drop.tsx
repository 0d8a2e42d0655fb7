/** Takes files by dropping or by choosing them. */
import { useRef } from 'preact/hooks'
import { useDropTarget } from './drop-target.ts'

interface FileDropProps {
  readonly label: string
  readonly hint: string
  readonly accept: string
  readonly isSeveral?: boolean
  readonly onFiles: (files: readonly File[]) => void
}

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
